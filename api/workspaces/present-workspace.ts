import type { ListedSurface, ListedSurfaceKey, ListedWorkspaceKey } from '../../schemas/http/workspaces/schemas.ts'
import type { Surface, SurfaceKey, WorkspaceKey } from '../../schemas/records/directory.ts'
import type { MakerState } from '../../shared/directory/surface-keys.ts'
import { keyPrefix } from './keys.ts'

/** Returns a surface as responses show it. */
export function presentSurface({ id, name, createdAt }: Surface): ListedSurface {
  return { id, name, createdAt }
}

/** Returns a key of a surface as lists show it: without its secret. `makers` are the states of API keys by their ids. */
export function presentSurfaceKey(key: SurfaceKey, makers: ReadonlyMap<string, MakerState>): ListedSurfaceKey {
  const { id, kind, prefix, scopes, createdAt, expiresAt, revokedAt, createdBy } = key
  const apiKeyState = createdBy?.apiKeyId ? (makers.get(createdBy.apiKeyId) ?? 'removed') : null
  return {
    id,
    kind,
    prefix: keyPrefix(prefix),
    scopes,
    createdAt,
    expiresAt,
    revokedAt,
    createdBy: createdBy ? { ...createdBy, apiKeyState } : null,
    ...presentLimits(key),
  }
}

/** Returns the quotas and allowed origins of a key, where it has some. */
export function presentLimits({
  quotas,
  allowedOrigins,
}: SurfaceKey): Pick<ListedSurfaceKey, 'quotas' | 'allowedOrigins'> {
  return { ...(quotas && { quotas }), ...(allowedOrigins && { allowedOrigins }) }
}

/** Returns an API key of a workspace as lists show it: without its secret. */
export function presentWorkspaceKey(key: WorkspaceKey): ListedWorkspaceKey {
  const { id, name, prefix, scopes, createdBy, createdAt, expiresAt, revokedAt } = key
  return { id, name, prefix: keyPrefix(prefix), scopes, createdBy, createdAt, expiresAt, revokedAt }
}
