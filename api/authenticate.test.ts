import { pino } from 'pino'
import { expect, it } from 'vitest'
import type { Permission } from '../schemas/control.ts'
import { createAuthenticate, type Guard } from './authenticate.ts'
import type { TokenVerdict } from './verify-token.ts'

const guard: Guard = {
  permission: 'org:findings:read',
  notFound: { code: 'FINDING_NOT_FOUND', message: 'no such finding' },
  unavailable: { code: 'FINDING_CONTEXT_QUERY_FAILED', message: 'later' },
}

const at = new Date(0).toISOString()
const workspace = { version: 1, id: 'ws_1', slug: 'acme', name: 'Acme', createdAt: at } as const

function setup(permissions: Permission[] | undefined, verdict: Partial<TokenVerdict> = {}) {
  const faults: { verify?: Error; members?: Error } = {}
  const authenticate = createAuthenticate({
    verifyToken: async () => {
      if (faults.verify) throw faults.verify
      return { ok: true, claims: { kind: 'session', subject: 'user_1', org: 'acme' }, ...verdict } as TokenVerdict
    },
    controlStore: {
      workspaceBySlug: async slug => (slug === 'acme' ? workspace : undefined),
      member: async (workspaceId, userId) => {
        if (faults.members) throw faults.members
        return permissions && { version: 1, workspaceId, userId, permissions }
      },
    },
    logger: pino({ level: 'silent' }),
    now: () => 0,
  })
  return { ask: () => authenticate('Bearer x', guard), faults }
}

const claims = (change: object) => ({ claims: { kind: 'session', subject: 'user_1', org: 'acme', ...change } }) as never

it('lets a member with the permission read its workspace', async () => {
  expect(await setup(['org:findings:read']).ask()).toEqual({ ok: true, workspaceId: 'ws_1' })
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
  expect(await setup(undefined, claims({ kind: 'workload' })).ask()).toEqual({ ok: true, workspaceId: 'ws_1' })
})

it('is unavailable, not unauthorized, while keys or members cannot be looked up', async () => {
  const { ask, faults } = setup(['org:findings:read'])
  faults.verify = new Error('the JWKS is away')
  expect(await ask()).toEqual({ ok: false, problem: guard.unavailable })
  delete faults.verify
  faults.members = new Error('redis is away')
  expect(await ask()).toEqual({ ok: false, problem: guard.unavailable })
  delete faults.members
  expect(await ask()).toEqual({ ok: true, workspaceId: 'ws_1' })
})
