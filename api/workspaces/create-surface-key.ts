import { createSurfaceKey } from '../../schemas/http/workspaces/operations.ts'
import {
  type CreateSurfaceKey,
  createSurfaceKeySchema,
  type SurfaceKeyCreated,
  surfaceIdSchema,
} from '../../schemas/http/workspaces/schemas.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import { type Directory, newId } from '../../shared/directory/directory.ts'
import { SURFACE_KEYS_MAX, WORKSPACE_SURFACE_KEYS_MAX } from '../../shared/directory/surface-keys.ts'
import type { Route } from '../../shared/http/route.ts'
import { digestOf, generateKey } from '../../shared/ids/credentials.ts'
import { authorOf } from '../http/author-of.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { keyExpiry, keyPrefix } from './keys.ts'
import { presentLimits } from './present-workspace.ts'
import { SURFACE } from './resources.ts'

interface Deps extends CreationRouteDeps {
  readonly directory: Pick<Directory, 'createSurfaceKey'>
  readonly now: () => number
}

const TOO_MANY_KEYS = invalid(
  `a surface can have at most ${SURFACE_KEYS_MAX} active keys, and a workspace at most ${WORKSPACE_SURFACE_KEYS_MAX}: revoke keys that are not used`,
)

/** Returns the route that creates a public or secret key of a surface. Only its response contains the text of the key. */
export function createSurfaceKeyRoute(deps: Deps): Route {
  return creationRoute(deps, createSurfaceKey, {
    resource: SURFACE,
    body: createSurfaceKeySchema,
    async create({ caller, body, param }): Promise<Outcome<SurfaceKeyCreated>> {
      const surfaceId = param('surfaceId')
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      const secret = generateKey(body.kind)
      const scopes = body.kind === 'secret' ? [...new Set(body.scopes)] : undefined
      const { workspaceId, userId, apiKeyId } = caller
      const createdBy = { userId, apiKeyId }
      const record = newRecord({ workspaceId, surfaceId, scopes: scopes ?? [], createdBy }, body, secret, deps.now())
      const outcome = await queryDirectory(deps.directory.createSurfaceKey(record, authorOf(caller, deps.now())))
      if (outcome === 'no_surface') return notFound(SURFACE)
      if (outcome === 'too_many_keys') return TOO_MANY_KEYS
      const { id, kind, expiresAt } = record
      return {
        ok: true,
        value: { key: { id, kind, secret, ...(scopes && { scopes }), expiresAt, ...presentLimits(record) } },
      }
    },
  })
}

function newRecord(
  owner: Pick<SurfaceKey, 'workspaceId' | 'surfaceId' | 'scopes' | 'createdBy'>,
  request: CreateSurfaceKey,
  secret: string,
  nowMs: number,
): SurfaceKey {
  const { kind, secondsUntilExpiration = null, quotas } = request
  const allowedOrigins = request.kind === 'public' ? request.allowedOrigins : undefined
  return {
    version: 1,
    id: newId('key'),
    kind,
    digest: digestOf(secret),
    prefix: keyPrefix(secret),
    ...owner,
    createdAt: rfc3339FromUnixMs(nowMs),
    expiresAt: keyExpiry(nowMs, secondsUntilExpiration),
    revokedAt: null,
    ...(quotas && Object.keys(quotas).length > 0 && { quotas }),
    ...(allowedOrigins && { allowedOrigins }),
  }
}
