import { pino } from 'pino'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { READER, USER } from '../../schemas/http/credentials.ts'
import { readFinding } from '../../schemas/http/findings/operations.ts'
import { tempoTags } from '../../schemas/http/grafana/tempo.ts'
import { listSurfaces, listWorkspaceKeys } from '../../schemas/http/workspaces/operations.ts'
import { FairShares } from '../../shared/concurrency/fair-shares.ts'
import { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Reply, RequestHead } from '../../shared/http/route.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Access, Guard } from '../auth/caller.ts'
import { type GuardedRequest, guardedRoute } from './guarded-route.ts'
import { FINDINGS } from './resource.ts'

const caller = { workspaceId: 'ws_1', userId: 'user_1', apiKeyId: null, permissions: new Set<never>() }
const query = z.object({ limit: z.string().regex(/^\d$/, 'must be a digit').optional() })

function setup(run: (request: GuardedRequest<z.infer<typeof query>>) => Promise<unknown>, access?: Access) {
  const checks: { guard: Guard; workspaceSlug: string | undefined }[] = []
  const deps = {
    authenticate: async (_presented: unknown, guard: Guard, workspaceSlug?: string) => {
      checks.push({ guard, workspaceSlug })
      return access ?? ({ ok: true, caller } as const)
    },
    logger: pino({ level: 'silent' }),
    queryTimeoutMs: 1_000,
    shares: { requests: new FairSlots({ slots: 2, waiting: 2 }), replyBytes: new FairShares(1_000_000) },
  }
  const ask = async (operation = readFinding, parameters: Record<string, string> = {}) => {
    const head: RequestHead = {
      method: 'GET',
      param: name => `the ${name}`,
      query: name => parameters[name],
      rawQuery: () => String(new URLSearchParams(parameters)),
      header: () => undefined,
      contentLength: undefined,
      closed: () => new AbortController().signal,
    }
    const route = guardedRoute(deps, operation, {
      resource: FINDINGS,
      query,
      run: async request => ({ ok: true, value: await run(request) }),
    })
    const { status, body } = (await route.accept(head, {
      belongsTo: () => {},
      renderWith: () => {},
      requestId: 'r',
    })) as Reply
    return { status, body: JSON.parse(String(body)) }
  }
  return { ask, checks }
}

const never = () => Promise.reject(new Error('must not run'))

it('runs with the workspace of the caller, the parameters of the path and the parsed query', async () => {
  const { ask } = setup(async ({ workspaceId, param, query: { limit } }) => [workspaceId, param('findingId'), limit])
  expect(await ask(readFinding, { limit: '7' })).toEqual({ status: 200, body: ['ws_1', 'the findingId', '7'] })
})

it('checks the permission and the credentials of the operation, in the workspace of the path', async () => {
  const { ask, checks } = setup(async () => 'read')
  for (const operation of [readFinding, listSurfaces, listWorkspaceKeys]) await ask(operation)
  expect(checks).toMatchObject([
    { guard: { permissions: ['org:findings:read'], credentials: READER }, workspaceSlug: undefined },
    { guard: { permissions: ['org:surfaces:read'], credentials: READER }, workspaceSlug: undefined },
    {
      guard: { permissions: ['org:workspace_auth:write'], credentials: USER },
      workspaceSlug: 'the workspaceSlug',
    },
  ])
})

it('checks the credential before the query, and the query before it runs', async () => {
  const refused = setup(never, { ok: false, problem: { code: 'AUTH_MISSING', message: 'no' } })
  expect(await refused.ask(readFinding, { limit: 'x' })).toMatchObject({ status: 401 })
  const problem = (message: string) => ({ code: 'REQUEST_INVALID', message, service: 'api-findings' })
  expect(await setup(never).ask(readFinding, { limit: 'x' })).toEqual({
    status: 400,
    body: problem('limit must be a digit'),
  })
  expect(await setup(never).ask(readFinding, { limitt: '7' })).toEqual({
    status: 400,
    body: problem('"limitt" is not a query parameter of this operation: use limit'),
  })
  // Clients of Tempo send parameters that are not used.
  expect(await setup(async () => 'read').ask(tempoTags, { spss: '3' })).toMatchObject({ status: 200 })
})

it('returns the problem of the resource when a store fails, and throws every other error', async () => {
  for (const error of [new TransientError('unavailable'), new PermanentError('invalid record')]) {
    const { ask } = setup(() => Promise.reject(error))
    expect(await ask()).toMatchObject({ status: 503, body: { code: 'FINDING_CONTEXT_QUERY_FAILED' } })
  }
  await expect(setup(() => Promise.reject(new TypeError('a bug'))).ask()).rejects.toThrow('a bug')
})
