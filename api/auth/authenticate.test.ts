import { pino } from 'pino'
import { expect, it } from 'vitest'
import { READER, USER } from '../../schemas/http/credentials.ts'
import type { Permission, WorkspaceKey } from '../../schemas/records/directory.ts'
import { digestOf, generateKey } from '../../shared/ids/credentials.ts'
import { createAuthenticate } from './authenticate.ts'
import type { Guard } from './caller.ts'
import type { TokenVerdict } from './verify-token.ts'

const guard: Guard = {
  permissions: ['org:findings:read'],
  credentials: USER,
  resourcePath: '',
  notFound: { code: 'FINDING_NOT_FOUND', message: 'no such finding' },
  unavailable: { code: 'FINDING_CONTEXT_QUERY_FAILED', message: 'later' },
}

const presenting = (authorization: string) => ({ authorization, host: 'a.example', isSecure: true })
const surfacesGuard: Guard = { ...guard, permissions: ['org:surfaces:read'], credentials: READER }

const at = new Date(0).toISOString()
const workspace = { version: 1, id: 'ws_1', slug: 'acme', name: 'Acme', createdAt: at } as const

function setup(
  permissions: Permission[] | undefined,
  verdict: Partial<TokenVerdict> = {},
  workspaceKey?: { text: string; record: Partial<WorkspaceKey> },
) {
  const faults: { verify?: Error; members?: Error } = {}
  const lookups: string[] = []
  const authenticate = createAuthenticate({
    verifyToken: async () => {
      if (faults.verify) throw faults.verify
      return { ok: true, claims: { kind: 'session', subject: 'user_1', org: 'acme' }, ...verdict } as TokenVerdict
    },
    directory: {
      workspaceBySlug: async slug => (slug === 'acme' ? workspace : undefined),
      member: async (workspaceId, userId) => {
        if (faults.members) throw faults.members
        return permissions && { version: 1, workspaceId, userId, permissions }
      },
      workspaceKeyByDigest: async digest => {
        lookups.push(digest)
        if (!workspaceKey || digest !== digestOf(workspaceKey.text)) return undefined
        return { ...keyRecord, digest, ...workspaceKey.record }
      },
    },
    counts: { of: () => ({ workspaceId: '', keyId: '', isPublic: true, requests: 0, bytes: 0 }) },
    logger: pino({ level: 'silent' }),
    now: () => 1_000,
  })
  const checkKey = (key: string, keyGuard = surfacesGuard) => authenticate(presenting(`Bearer ${key}`), keyGuard)
  return { check: (slug?: string) => authenticate(presenting('Bearer x'), guard, slug), checkKey, faults, lookups }
}

const keyRecord: WorkspaceKey = {
  version: 1,
  id: 'key_1',
  workspaceId: 'ws_1',
  name: 'deploys',
  scopes: ['org:surfaces:read', 'org:surfaces:write'],
  digest: '',
  prefix: 'wk_',
  createdBy: 'user_1',
  createdAt: at,
  expiresAt: null,
  revokedAt: null,
}

const claims = (change: object) => ({ claims: { kind: 'session', subject: 'user_1', org: 'acme', ...change } }) as never

it('accepts a member with the permission in its workspace', async () => {
  const { check } = setup(['org:findings:read'])
  const permissions = new Set(['org:findings:read'])
  const caller = { workspaceId: 'ws_1', userId: 'user_1', apiKeyId: null, permissions }
  expect(await check()).toEqual({ ok: true, caller })
  expect(await check('acme')).toEqual({ ok: true, caller })
})

it('returns not found when the path names another workspace than the token', async () => {
  expect(await setup(['org:findings:read']).check('other')).toEqual({ ok: false, problem: guard.notFound })
  expect(await setup(['org:findings:read'], claims({ org: 'other' })).check('acme')).toEqual({
    ok: false,
    problem: guard.notFound,
  })
})

it('names the missing permission to a member', async () => {
  const message = 'the permission org:findings:read is required'
  expect(await setup(['org:sessions:read']).check()).toMatchObject({ problem: { code: 'PERMISSION_DENIED', message } })
})

it('returns not found to a user who is not a member, and for an unknown workspace', async () => {
  const message = expect.stringContaining('you are not a member of the workspace')
  const refusal = { ok: false, problem: { ...guard.notFound, message } }
  expect(await setup(undefined).check()).toEqual(refusal)
  for (const org of ['other', 'Not A Slug', '*', '../acme']) {
    expect(await setup(['org:findings:read'], claims({ org })).check()).toEqual(refusal)
  }
  // A path with a workspace is answered as any path of which the caller sees nothing.
  expect(await setup(undefined).check('acme')).toEqual({ ok: false, problem: guard.notFound })
})

it('requires the claim org', async () => {
  expect(await setup([], claims({ org: undefined })).check()).toMatchObject({ problem: { code: 'AUTH_ORG_REQUIRED' } })
})

it('returns what is wrong with a token', async () => {
  const { check } = setup([], { ok: false, reason: 'the token has expired' })
  expect(await check()).toEqual({ ok: false, problem: { code: 'AUTH_MISSING', message: 'the token has expired' } })
})

it('grants a workload the read permissions of its workspace without a membership', async () => {
  const { check, checkKey } = setup(undefined, claims({ kind: 'workload' }))
  expect(await check()).toMatchObject({ ok: true, caller: { workspaceId: 'ws_1' } })
  for (const permission of ['org:surfaces:write', 'org:surfaces:delete', 'org:workspace_auth:write'] as const) {
    expect(await checkKey('x', { ...guard, permissions: [permission] })).toMatchObject({
      problem: { code: 'PERMISSION_DENIED' },
    })
  }
})

it('grants a workspace key those of its scopes that its creator has as permissions now', async () => {
  const text = generateKey('workspace')
  const { checkKey } = setup(['org:surfaces:read', 'org:surfaces:delete'], {}, { text, record: {} })
  expect(await checkKey(text)).toEqual({
    ok: true,
    caller: {
      workspaceId: 'ws_1',
      userId: 'user_1',
      apiKeyId: 'key_1',
      permissions: new Set(['org:surfaces:read']),
    },
  })
  const denied = (permission: Permission) => checkKey(text, { ...surfacesGuard, permissions: [permission] })
  expect(await denied('org:surfaces:write')).toMatchObject({
    problem: { code: 'PERMISSION_DENIED', message: expect.stringContaining('creator') },
  })
  expect(await denied('org:surfaces:delete')).toMatchObject({
    problem: { code: 'PERMISSION_DENIED', message: expect.stringContaining('not among the scopes') },
  })
  const orphan = setup(undefined, {}, { text, record: {} })
  expect(await orphan.checkKey(text)).toMatchObject({ problem: { code: 'PERMISSION_DENIED' } })
})

it('returns whether a workspace key is malformed, unknown, revoked, expired or not accepted', async () => {
  const text = generateKey('workspace')
  const all: Permission[] = ['org:surfaces:read']
  const refused = (message: string) => ({ ok: false, problem: { code: 'AUTH_MISSING', message } })
  const unknown = setup(all)
  expect(await unknown.checkKey(`${text.slice(0, -1)}~`)).toEqual(refused('the workspace key is malformed'))
  expect(await unknown.checkKey(`wk_${'a'.repeat(10_000)}`)).toEqual(refused('the workspace key is malformed'))
  expect(unknown.lookups).toEqual([])
  expect(await unknown.checkKey(text)).toEqual(refused('the workspace key is unknown'))
  const revoked = setup(all, {}, { text, record: { revokedAt: at } })
  expect(await revoked.checkKey(text)).toEqual(refused('the workspace key is revoked'))
  const expired = setup(all, {}, { text, record: { expiresAt: new Date(1_000).toISOString() } })
  expect(await expired.checkKey(text)).toEqual(refused('the workspace key is expired'))
  const young = setup(all, {}, { text, record: { expiresAt: new Date(1_001).toISOString() } })
  expect(await young.checkKey(text)).toMatchObject({ ok: true })
  const takes = 'this operation takes the token of a signed-in user'
  expect(await young.checkKey(text, guard)).toEqual(refused(`${takes}; a workspace API key (wk_…) was sent`))
  const secret = await young.checkKey(generateKey('secret'), guard)
  expect(secret).toEqual(refused(`${takes}; a secret key of a surface (sk_…) was sent`))
})

it('returns unavailable, not unauthorized, while keys or members cannot be looked up', async () => {
  const { check, faults } = setup(['org:findings:read'])
  faults.verify = new Error('the JWKS is unavailable')
  expect(await check()).toEqual({ ok: false, problem: guard.unavailable })
  delete faults.verify
  faults.members = new Error('redis is unavailable')
  expect(await check()).toEqual({ ok: false, problem: guard.unavailable })
  delete faults.members
  expect(await check()).toMatchObject({ ok: true })
})

it('reads the membership again when a slug belongs to another workspace than before', async () => {
  let id = 'ws_1'
  const members: string[] = []
  const authenticate = createAuthenticate({
    verifyToken: async () => ({ ok: true, claims: { kind: 'session', subject: 'user_1', org: 'acme' } }),
    directory: {
      workspaceBySlug: async () => ({ ...workspace, id }),
      member: async (workspaceId, userId) => {
        members.push(workspaceId)
        return { version: 1, workspaceId, userId, permissions: ['org:findings:read'] }
      },
      workspaceKeyByDigest: async () => undefined,
    },
    counts: { of: () => ({ workspaceId: '', keyId: '', isPublic: true, requests: 0, bytes: 0 }) },
    logger: pino({ level: 'silent' }),
    now: () => 1_000,
  })
  const workspaceOfCaller = async () => {
    const access = await authenticate(presenting('Bearer x'), guard, undefined)
    return access.ok ? access.caller.workspaceId : undefined
  }
  expect(await workspaceOfCaller()).toBe('ws_1')
  expect(await workspaceOfCaller()).toBe('ws_1')
  id = 'ws_2'
  expect(await workspaceOfCaller()).toBe('ws_2')
  expect(await workspaceOfCaller()).toBe('ws_2')
  expect(members).toEqual(['ws_1', 'ws_1', 'ws_1', 'ws_2', 'ws_2'])
})
