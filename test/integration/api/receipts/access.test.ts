import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { PERMISSIONS } from '../../../../schemas/records/directory.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import { createDirectory, newId } from '../../../../shared/directory/directory.ts'
import { readReceiptSecret } from '../../../../shared/directory/receipt-secret.ts'
import { generateKey } from '../../../../shared/ids/credentials.ts'
import { newCommit, openReceiptId, ReceiptIds, receiptSeal } from '../../../../shared/ids/receipt.ts'
import { putWorkspace, signToken } from '../../../support/services/api.ts'
import { issueKey } from '../../../support/services/edge.ts'
import {
  ask,
  browse,
  type Credential,
  publicKey,
  redis,
  redisUrl,
  secretKey,
  slug,
  surfaceId,
  token,
  workspaceId,
} from './fixture.ts'

describe('a receipt that does not belong to the caller is not found, with the same message', () => {
  it.each(['public', 'secret', 'token'])('for a %s credential', async kind => {
    const directory = createDirectory(redis)
    const other = { id: newId('ws'), slug: `other-${randomBytes(4).toString('hex')}` }
    await putWorkspace(redisUrl, other)
    const key = { kind: 'secret' as const, scopes: ['release:write'] }
    const keysOf = async (place: { workspaceId: string; surfaceId: string }) => ({
      public: { headers: { 'x-service-public-key': await issueKey(directory, place) } },
      secret: { bearer: await issueKey(directory, { ...key, ...place }) },
    })
    const own = {
      public: { headers: { 'x-service-public-key': publicKey } },
      secret: { bearer: secretKey },
      token: { bearer: token },
    }
    const sibling = await keysOf({ workspaceId, surfaceId: newId('srf') })
    const foreign = {
      ...(await keysOf({ workspaceId: other.id, surfaceId })),
      token: { bearer: await signToken({ org: other.slug }) },
    }
    const { receiptId } = await browse('POST /v3/session', '{"sessionId":"s"}')
    const id = receiptId ?? ''
    const as = kind as keyof typeof own
    expect((await ask(id, own[as])).status).toBe(200)

    const secret = (await readReceiptSecret(redis)) ?? randomBytes(32)
    const opened = openReceiptId(secret, workspaceId, id)
    expect(opened).toMatchObject({ surfaceId, kind: 'sessions' })
    const long = newCommit('sessions', Date.now() - 31 * DAY_MS)
    const place = { workspaceId, surfaceId }
    const expired = new ReceiptIds(long).write(0, receiptSeal(secret, place)).toString()
    const forged = new ReceiptIds(opened?.commit ?? long).write(0, receiptSeal(randomBytes(32), place)).toString()
    const nothing = await ask('rct_x', own[as])
    expect(nothing).toMatchObject({ status: 404, body: { code: 'NOT_FOUND', service: 'gateway' } })
    const answers = [
      await ask(id, foreign[as]),
      ...(as === 'token' ? [] : [await ask(id, sibling[as])]),
      await ask(expired, own[as]),
      await ask(forged, own[as]),
      await ask(id.slice(0, -1), own[as]),
      await ask(id.toUpperCase(), own[as]),
      await ask('%00', own[as]),
    ]
    for (const { status, body } of answers) expect({ status, body }).toEqual({ status: 404, body: nothing.body })
  })
})

describe('access to a receipt', () => {
  const id = 'rct_x'
  it.each<[string, Credential, number, string]>([
    ['nobody', { headers: {} }, 401, 'AUTH_MISSING'],
    ['an unknown public key', { headers: { 'x-service-public-key': generateKey('public') } }, 401, 'AUTH_PK_INVALID'],
    ['a secret key as a public one', { headers: { 'x-service-public-key': 'sk_1' } }, 401, 'AUTH_PK_INVALID'],
    ['an unknown secret key', { bearer: generateKey('secret') }, 401, 'AUTH_MISSING'],
    ['a workspace key', { bearer: generateKey('workspace') }, 401, 'AUTH_MISSING'],
    ['a malformed token', { bearer: 'ey.ey.ey' }, 401, 'AUTH_MISSING'],
  ])('is refused for %s', async (_, credential, status, code) => {
    expect(await ask(id, credential)).toMatchObject({ status, body: { code, service: 'frontier-auth' } })
  })

  it('is refused for a key that was revoked a moment ago', async () => {
    const directory = createDirectory(redis)
    const keyId = newId('key')
    const headers = { 'x-service-public-key': await issueKey(directory, { id: keyId, workspaceId, surfaceId }) }
    expect((await ask(id, { headers })).status).toBe(404)
    await directory.revokeSurfaceKey(workspaceId, surfaceId, keyId, Date.now())
    expect(await ask(id, { headers })).toMatchObject({ status: 401, body: { code: 'AUTH_PK_INVALID' } })
  })

  it('is given to a member with any read permission and to no other member', async () => {
    const bearer = await signToken({ org: slug, sub: 'reader' })
    const statusWith = async (permissions: (typeof PERMISSIONS)[number][]) => {
      await createDirectory(redis).putMember({ version: 1, workspaceId, userId: 'reader', permissions })
      return (await ask(id, { bearer })).status
    }
    expect(await statusWith(PERMISSIONS.filter(permission => !permission.endsWith(':read')))).toBe(403)
    for (const permission of PERMISSIONS.filter(name => name.endsWith(':read'))) {
      expect(await statusWith([permission])).toBe(404)
    }
  })
})
