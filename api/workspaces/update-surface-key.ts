import { updateSurfaceKey } from '../../schemas/http/workspaces/operations.ts'
import {
  type SurfaceKeyUpdated,
  surfaceIdSchema,
  surfaceKeyIdSchema,
  type UpdateSurfaceKey,
  updateSurfaceKeySchema,
} from '../../schemas/http/workspaces/schemas.ts'
import type { KeyQuotas, SurfaceKey } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { invalid, type Outcome, okReply } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { presentSurfaceKey } from './present-workspace.ts'
import { SURFACE, SURFACE_KEY } from './resources.ts'

interface Deps extends CreationRouteDeps {
  readonly directory: Pick<Directory, 'surfaceKey' | 'updateSurfaceKey' | 'makerStates'>
  readonly now: () => number
}

const NO_ORIGINS = invalid('allowedOrigins must be left out: a secret key has none, because no page may use it')

/** Returns the route that changes the quotas and the allowed origins of a key of a surface (docs/api/credentials.md#quotas). */
export function updateSurfaceKeyRoute(deps: Deps): Route {
  const { directory } = deps
  return creationRoute(deps, updateSurfaceKey, {
    resource: SURFACE,
    body: updateSurfaceKeySchema,
    reply: okReply,
    async create({ caller, body, param }): Promise<Outcome<SurfaceKeyUpdated>> {
      const { workspaceId } = caller
      const author = authorOf(caller, deps.now())
      const [surfaceId, keyId] = [param('surfaceId'), param('keyId')]
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      if (!surfaceKeyIdSchema.safeParse(keyId).success) return notFound(SURFACE_KEY)
      const known = await queryDirectory(directory.surfaceKey(workspaceId, surfaceId, keyId))
      if (known === undefined) return notFound(SURFACE_KEY)
      if (known.kind === 'secret' && body.allowedOrigins) return NO_ORIGINS
      const change = (key: SurfaceKey) => ({ quotas: changeQuotas(key.quotas, body.quotas), ...originsOf(body) })
      const key = await queryDirectory(directory.updateSurfaceKey(workspaceId, surfaceId, keyId, change, author))
      if (key === undefined) return notFound(SURFACE_KEY)
      const makers = await queryDirectory(directory.makerStates(workspaceId, [key], deps.now()))
      return { ok: true, value: { key: presentSurfaceKey(key, makers) } }
    },
  })
}

/** Returns the quotas after a change. Null removes a quota or all of them, and absent ones stay. */
function changeQuotas(before: KeyQuotas = {}, change: UpdateSurfaceKey['quotas']): KeyQuotas {
  if (change === null) return {}
  const after = Object.entries({ ...before, ...change }).filter(([, quota]) => quota !== null && quota !== undefined)
  return Object.fromEntries(after)
}

function originsOf({ allowedOrigins }: UpdateSurfaceKey) {
  return allowedOrigins === undefined ? {} : { allowedOrigins }
}
