import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { workspaceKeyCreatedSchema } from '../../../schemas/http/workspaces/schemas.ts'
import { PERMISSIONS, type Permission } from '../../../schemas/records/directory.ts'
import { createDirectory, type Directory, newId } from '../../../shared/directory/directory.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

/**
 * Requests that show whether a permission is granted without changing anything: after the check of the permission they
 * fail for another reason.
 */
const PROBES = {
  'org:surfaces:read': { operation: 'GET /v3/surfaces', body: undefined, granted: 200 },
  'org:surfaces:write': { operation: 'POST /v3/surfaces', body: {}, granted: 400 },
  'org:members:read': { operation: 'GET /v3/members', body: undefined, granted: 200 },
  'org:surfaces:delete': { operation: 'DELETE /v3/surfaces/srf_absent', body: undefined, granted: 404 },
} as const
type Probed = keyof typeof PROBES

const permissionSet = fc.subarray([...PERMISSIONS])
const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ type: fc.constant('permit' as const), permissions: permissionSet }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('remove' as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('revoke' as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 4_000 }) }) },
  // To the millisecond before the key expires, to its expiry, or just past it.
  { weight: 2, arbitrary: fc.record({ type: fc.constant('near' as const), ms: fc.integer({ min: -1, max: 1 }) }) },
)
const life = fc.record({
  scopes: fc.subarray([...PERMISSIONS], { minLength: 1 }),
  seconds: fc.option(fc.integer({ min: 1, max: 10 })),
  steps: fc.array(step, { maxLength: 6 }),
})

const services = sharedServices()
let api: TestApi
let redis: Redis
let directory: Directory
let nowMs = Date.now()

beforeAll(async () => {
  redis = new Redis(services.redisUrl)
  directory = createDirectory(redis)
  api = await startApi(services, 'default', {}, () => nowMs)
})
afterAll(async () => {
  await api.stop()
  redis.disconnect()
})

it('a workspace key grants the permissions that both its scopes and its creator have, until it expires', async () => {
  const workspaceId = newId('ws')
  const slug = workspaceId.replace('_', '-')
  await putWorkspace(services.redisUrl, { id: workspaceId, slug })
  const seen = new Set<number>()

  await fc.assert(
    fc.asyncProperty(life, async ({ scopes, seconds, steps }) => {
      const userId = `user_${randomUUID()}`
      const permit = (permissions: Permission[]) =>
        directory.putMember({ version: 1, workspaceId, userId, permissions })
      await permit([...PERMISSIONS])
      const path = `/v3/workspaces/${slug}/api-keys`
      const token = await signToken({ org: slug, sub: userId, exp: Math.floor(nowMs / 1_000) + 3_600 })
      const answer = await call(api.baseUrl, `POST ${path}`, {
        bearer: token,
        body: { idempotencyKey: randomUUID(), name: 'k', scopes, secondsUntilExpiration: seconds },
      })
      const key = workspaceKeyCreatedSchema.parse(answer.body).apiKey

      // The rule of docs/api/credentials.md#credentials, computed only from the actions of this test.
      let present: readonly Permission[] = PERMISSIONS
      let isRevoked = false
      const endsAtMs = seconds === null ? Number.POSITIVE_INFINITY : nowMs + seconds * 1_000
      const expected = (permission: Probed) => {
        if (isRevoked || nowMs >= endsAtMs) return 401
        return scopes.includes(permission) && present.includes(permission) ? PROBES[permission].granted : 403
      }

      for (const action of [undefined, ...steps]) {
        if (action?.type === 'permit') {
          await permit(action.permissions)
          present = action.permissions
        } else if (action?.type === 'remove') {
          await directory.removeMember(workspaceId, userId)
          present = []
        } else if (action?.type === 'revoke') {
          await directory.revokeWorkspaceKey(workspaceId, key.id, nowMs)
          isRevoked = true
        } else if (action?.type === 'pass') nowMs += action.ms
        else if (action?.type === 'near' && seconds !== null) nowMs = Math.max(nowMs, endsAtMs + action.ms)
        for (const permission of Object.keys(PROBES) as Probed[]) {
          const { operation, body } = PROBES[permission]
          const { status } = await call(api.baseUrl, operation, { bearer: key.secret, body })
          expect({ permission, status }).toEqual({ permission, status: expected(permission) })
          seen.add(status)
        }
      }
    }),
    { numRuns: 60 },
  )
  expect([...seen].sort()).toEqual([200, 400, 401, 403, 404])
})
