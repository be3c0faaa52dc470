import { afterAll, describe, expect, it } from 'vitest'
import { digestOf, generateKey } from '../../../../shared/ids/credentials.ts'
import { BUILD_OPERATIONS, refusal, SECRET, startBuildEdge } from '../../../support/services/build-edge.ts'
import { issueKey } from '../../../support/services/edge.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { until } from '../../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`

const build = await startBuildEdge(services, redisUrl)
afterAll(() => build.stop())
const { directory, edge, logLines, send, register, sign, putPart } = build

describe('credentials', () => {
  const missing = (message: RegExp) => refusal(401, 'AUTH_MISSING', message, 'frontier-auth')

  it.each(BUILD_OPERATIONS)('%s %s checks the secret key first', async (method, path) => {
    const body = 'x'.repeat(300)
    const ask = (authorization: string) => send(method, path, { body, type: 'text/csv', headers: { authorization } })
    expect(await ask('')).toMatchObject(missing(/is required/))
    expect(await ask('Basic abc')).toMatchObject(missing(/malformed/))
    expect(await ask(`Bearer ${build.secretKey}x`)).toMatchObject(missing(/malformed/))
    expect(await ask(`Bearer ${generateKey('secret')}`)).toMatchObject(missing(/unknown/))
    const wrong = (sent: string) =>
      missing(new RegExp(`takes a secret key of a surface \\(sk_…\\); ${sent} .* was sent$`))
    expect(await ask(`Bearer ${await issueKey(directory)}`)).toMatchObject(wrong('a public key of a surface'))
    expect(await ask(`Bearer ${generateKey('workspace')}`)).toMatchObject(wrong('a workspace API key'))
    expect(await ask(`Bearer ${await issueKey(directory, { ...SECRET, scopes: ['release:read'] })}`)).toMatchObject(
      refusal(403, 'AUTH_AK_SCOPE_MISMATCH', /release:write/, 'frontier-auth'),
    )
  })

  it('are named to a request without a usable one, also where the path cannot be decoded', async () => {
    const challenge = async (headers: Record<string, string>) => {
      const response = await fetch(`${edge.baseUrl}/v3/releases/rel_%FF/telemetry`, {
        method: 'POST',
        headers,
        body: '{}',
      })
      return [response.status, response.headers.get('www-authenticate')]
    }
    expect(await challenge({})).toEqual([401, 'Bearer realm="penstock"'])
    expect(await challenge({ authorization: `Bearer ${generateKey('secret')}` })).toEqual([
      401,
      'Bearer realm="penstock", error="invalid_token"',
    ])
    const authorization = `Bearer ${build.secretKey}`
    expect(await challenge({ authorization, 'content-type': 'application/json' })).toEqual([400, null])
  })

  it('a public key is refused on routes of secret keys, and the reverse', async () => {
    const publicKey = await issueKey(directory)
    const headers = { authorization: '', 'x-service-public-key': publicKey }
    expect(await send('POST', '/v3/releases', { headers, body: {} })).toMatchObject(missing(/is required/))
    const drain = await fetch(`${edge.baseUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': build.secretKey },
      body: '{}',
    })
    expect([drain.status, await drain.json()]).toEqual([
      401,
      {
        message: 'this operation takes a public key of a surface (pk_…); a secret key of a surface (sk_…) was sent',
      },
    ])
  })

  it('a revoked key stops working within a second, with a message that names the reason', async () => {
    const key = await issueKey(directory, SECRET)
    expect((await send('POST', '/v3/releases', { key, body: { version: '1' } })).status).toBe(200)
    const record = await directory.surfaceKeyByDigest(digestOf(key))
    if (!record) throw new Error('the key is not stored')
    await directory.putSurfaceKey({ ...record, revokedAt: new Date().toISOString() })
    const refused = () => send('POST', '/v3/releases', { key, body: { version: '1' } })
    const answer = await until(
      'the key is refused',
      async () => {
        const current = await refused()
        return current.status === 401 ? current : undefined
      },
      { deadlineMs: 1_000 },
    )
    expect(answer).toMatchObject(missing(/revoked/))
  })

  it('a key stops working when it expires', async () => {
    const expiresAt = new Date(Date.now() + 400)
    const key = await issueKey(directory, { ...SECRET, expiresAt: expiresAt.toISOString() })
    expect((await send('POST', '/v3/releases', { key, body: { version: '1' } })).status).toBe(200)
    await until('the key has expired', () => Date.now() > expiresAt.getTime())
    expect(await send('POST', '/v3/releases', { key, body: { version: '1' } })).toMatchObject(missing(/expired/))
  })

  it('a release of another surface is forbidden, and one of another workspace is unknown', async () => {
    const slug = await register()
    const otherSurface = await issueKey(directory, { ...SECRET, surfaceId: 'srf_2' })
    const otherWorkspace = await issueKey(directory, { ...SECRET, workspaceId: 'ws_2' })
    for (const [method, path] of BUILD_OPERATIONS.slice(1)) {
      const answer = await send(method, path.replace('rel_x', slug), { key: otherSurface, body: {} })
      expect(answer).toMatchObject(refusal(403, 'AUTH_AK_SCOPE_MISMATCH', /another surface/, 'frontier-auth'))
    }
    expect(await sign(slug, [], { key: otherWorkspace })).toMatchObject(refusal(404, 'RELEASE_NOT_FOUND'))
    const bytes = Buffer.from('other workspace')
    expect((await putPart(slug, 'a.map', 0, bytes, { key: otherWorkspace })).status).toBe(200)
    expect((await putPart(slug, 'a.map', 0, Buffer.from('own workspace'))).status).toBe(200)
  })

  it('no response allows a page of another origin to read it', async () => {
    const answer = await send('POST', '/v3/releases', { body: {}, headers: { origin: 'https://shop.example' } })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })
})

it('logs no credential', () => {
  const text = logLines.join('')
  expect(text).not.toMatch(/sk_[0-9A-Za-z]{6}/)
  expect(text).not.toMatch(/X-Amz-|Bearer/)
})
