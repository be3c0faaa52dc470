import {
  type CreateSurfaceKey,
  createSurfaceKeySchema,
  type SurfaceKeyCreated,
  surfaceIdSchema,
} from '../../schemas/http/workspaces/schemas.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import { newId } from '../../shared/directory/directory.ts'
import { SURFACE_KEYS_MAX } from '../../shared/directory/surfaces.ts'
import type { Route } from '../../shared/http/route.ts'
import { digestOf, generateKey } from '../../shared/ids/credentials.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import {
  DIRECTORY_BODY_LIMIT_BYTES,
  DIRECTORY_OVER_LIMIT,
  type DirectoryDeps,
  guardedCreation,
  surfaceGuard,
  surfaceNotFound,
} from '../http/guarded-directory.ts'
import { invalid } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import { keyExpiry } from './key-expiry.ts'
import { keyPrefix } from './present-workspace.ts'

const GUARD = surfaceGuard('org:surfaces:write')
const TOO_MANY_KEYS = invalid(
  `the surface must have at most ${SURFACE_KEYS_MAX} keys, revoked and expired ones too: make another surface`,
  'operation',
)

/** Makes a public or a secret key of a surface. It works at once; its text is nowhere but in this answer. */
export function createSurfaceKeyRoute(deps: DirectoryDeps): Route {
  return {
    method: 'POST',
    path: '/v3/surfaces/:surfaceId/keys',
    bodyLimitBytes: DIRECTORY_BODY_LIMIT_BYTES,
    overLimit: DIRECTORY_OVER_LIMIT,
    accept(head) {
      const surfaceId = head.param('surfaceId')
      return guardedCreation(deps, head, { guard: GUARD }, createSurfaceKeySchema, async ({ workspaceId }, body) =>
        surfaceIdSchema.safeParse(surfaceId).success
          ? createSurfaceKey(deps, { workspaceId, surfaceId }, body)
          : surfaceNotFound,
      )
    },
  }
}

async function createSurfaceKey(
  { directory, now }: DirectoryDeps,
  { workspaceId, surfaceId }: { workspaceId: string; surfaceId: string },
  asked: CreateSurfaceKey,
): Promise<Outcome<SurfaceKeyCreated>> {
  const nowMs = now()
  const secret = generateKey(asked.kind)
  const scopes = asked.kind === 'secret' ? [...new Set(asked.scopes)] : undefined
  const key: SurfaceKey = {
    version: 1,
    id: newId('key'),
    kind: asked.kind,
    digest: digestOf(secret),
    prefix: keyPrefix(secret),
    workspaceId,
    surfaceId,
    scopes: scopes ?? [],
    createdAt: rfc3339FromUnixMs(nowMs),
    expiresAt: keyExpiry(nowMs, asked.secondsUntilExpiration ?? null),
    revokedAt: null,
  }
  const outcome = await askDirectory(directory.createSurfaceKey(key))
  if (outcome === 'no_surface') return surfaceNotFound
  if (outcome === 'too_many_keys') return TOO_MANY_KEYS
  const { id, kind, expiresAt } = key
  return { ok: true, value: { key: { id, kind, secret, ...(scopes && { scopes }), expiresAt } } }
}
