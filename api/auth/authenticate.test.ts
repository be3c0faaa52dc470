import { pino } from 'pino'
import { expect, it } from 'vitest'
import type { Permission, WorkspaceKey } from '../../schemas/records/directory.ts'
import { digestOf, generateKey } from '../../shared/ids/credentials.ts'
import { createAuthenticate, type Guard } from './authenticate.ts'
import type { TokenVerdict } from './verify-token.ts'

const guard: Guard = {
  permission: 'org:findings:read',
  notFound: { code: 'FINDING_NOT_FOUND', message: 'no such finding' },
  unavailable: { code: 'FINDING_CONTEXT_QUERY_FAILED', message: 'later' },
}

const surfacesGuard: Guard = { ...guard, permission: 'org:surfaces:read', takesWorkspaceKeys: true }

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
    logger: pino({ level: 'silent' }),
    now: () => 1_000,
  })
  const askWith = (key: string, asked = surfacesGuard) => authenticate(`Bearer ${key}`, asked)
  return { ask: (slug?: string) => authenticate('Bearer x', guard, slug), askWith, faults, lookups }
}

const keyRecord: WorkspaceKey = {
  version: 1,
  id: 'key_1',
  workspaceId: 'ws_1',
  name: 'deploys',
  scopes: ['org:surfaces:read', 'org:surfaces:write'],
  digest: '',
  prefix: 'wk_',
  salt: '',
  createdBy: 'user_1',
  idempotencyKey: '',
  createdAt: at,
  expiresAt: null,
  revokedAt: null,
  secondsUntilExpiration: null,
}

const claims = (change: object) => ({ claims: { kind: 'session', subject: 'user_1', org: 'acme', ...change } }) as never

it('lets a member with the permission read its workspace', async () => {
  const { ask } = setup(['org:findings:read'])
  const caller = { workspaceId: 'ws_1', userId: 'user_1', permissions: new Set(['org:findings:read']) }
  expect(await ask()).toEqual({ ok: true, caller })
  expect(await ask('acme')).toEqual({ ok: true, caller })
})

it('shows a member of another workspace than the path names that it does not exist', async () => {
  expect(await setup(['org:findings:read']).ask('other')).toEqual({ ok: false, problem: guard.notFound })
  expect(await setup(['org:findings:read'], claims({ org: 'other' })).ask('acme')).toEqual({
    ok: false,
    problem: guard.notFound,
  })
})

it('tells a member without the permission which one is needed', async () => {
  const message = 'the permission org:findings:read is needed'
  expect(await setup(['org:sessions:read']).ask()).toMatchObject({ problem: { code: 'PERMISSION_DENIED', message } })
})

it('shows a stranger, and who names an unknown workspace, that the thing does not exist', async () => {
  expect(await setup(undefined).ask()).toEqual({ ok: false, problem: guard.notFound })
  for (const org of ['other', 'Not A Slug', '*', '../acme']) {
    expect(await setup(['org:findings:read'], claims({ org })).ask()).toEqual({ ok: false, problem: guard.notFound })
  }
})

it('wants an organization', async () => {
  expect(await setup([], claims({ org: undefined })).ask()).toMatchObject({ problem: { code: 'AUTH_ORG_REQUIRED' } })
})

it('says what is wrong with a token', async () => {
  const { ask } = setup([], { ok: false, reason: 'the token has expired' })
  expect(await ask()).toEqual({ ok: false, problem: { code: 'AUTH_MISSING', message: 'the token has expired' } })
})

it('gives a workload the read permissions of its organization, member or not', async () => {
  const { ask, askWith } = setup(undefined, claims({ kind: 'workload' }))
  expect(await ask()).toMatchObject({ ok: true, caller: { workspaceId: 'ws_1' } })
  for (const permission of ['org:surfaces:write', 'org:surfaces:delete', 'org:workspace_auth:write'] as const) {
    expect(await askWith('x', { ...guard, permission })).toMatchObject({ problem: { code: 'PERMISSION_DENIED' } })
  }
})

it('gives a workspace key its scopes as far as its creator has these permissions now', async () => {
  const text = generateKey('workspace')
  const { askWith } = setup(['org:surfaces:read', 'org:surfaces:delete'], {}, { text, record: {} })
  expect(await askWith(text)).toEqual({
    ok: true,
    caller: { workspaceId: 'ws_1', userId: 'user_1', permissions: new Set(['org:surfaces:read']) },
  })
  const denied = (permission: Permission) => askWith(text, { ...surfacesGuard, permission })
  expect(await denied('org:surfaces:write')).toMatchObject({
    problem: { code: 'PERMISSION_DENIED', message: expect.stringContaining('creator') },
  })
  expect(await denied('org:surfaces:delete')).toMatchObject({
    problem: { code: 'PERMISSION_DENIED', message: expect.stringContaining('not among the scopes') },
  })
  const orphan = setup(undefined, {}, { text, record: {} })
  expect(await orphan.askWith(text)).toMatchObject({ problem: { code: 'PERMISSION_DENIED' } })
})

it('says of a workspace key whether it is malformed, unknown, revoked, expired or not accepted', async () => {
  const text = generateKey('workspace')
  const all: Permission[] = ['org:surfaces:read']
  const told = (message: string) => ({ ok: false, problem: { code: 'AUTH_MISSING', message } })
  const unknown = setup(all)
  expect(await unknown.askWith(`${text.slice(0, -1)}~`)).toEqual(told('the workspace key is malformed'))
  expect(await unknown.askWith(`wk_${'a'.repeat(10_000)}`)).toEqual(told('the workspace key is malformed'))
  expect(unknown.lookups).toEqual([])
  expect(await unknown.askWith(text)).toEqual(told('the workspace key is unknown'))
  const revoked = setup(all, {}, { text, record: { revokedAt: at } })
  expect(await revoked.askWith(text)).toEqual(told('the workspace key is revoked'))
  const expired = setup(all, {}, { text, record: { expiresAt: new Date(1_000).toISOString() } })
  expect(await expired.askWith(text)).toEqual(told('the workspace key is expired'))
  const young = setup(all, {}, { text, record: { expiresAt: new Date(1_001).toISOString() } })
  expect(await young.askWith(text)).toMatchObject({ ok: true })
  expect(await young.askWith(text, guard)).toEqual(told('a workspace key is not accepted here'))
})

it('is unavailable, not unauthorized, while keys or members cannot be looked up', async () => {
  const { ask, faults } = setup(['org:findings:read'])
  faults.verify = new Error('the JWKS is away')
  expect(await ask()).toEqual({ ok: false, problem: guard.unavailable })
  delete faults.verify
  faults.members = new Error('redis is away')
  expect(await ask()).toEqual({ ok: false, problem: guard.unavailable })
  delete faults.members
  expect(await ask()).toMatchObject({ ok: true })
})
