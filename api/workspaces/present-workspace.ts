import type { ListedSurface, ListedSurfaceKey, ListedWorkspaceKey } from '../../schemas/http/workspaces/schemas.ts'
import type { Surface, SurfaceKey, WorkspaceKey } from '../../schemas/records/directory.ts'
import { keyPrefix } from './keys.ts'

/** Returns a surface as responses show it. */
export function presentSurface({ id, name, createdAt }: Surface): ListedSurface {
  return { id, name, createdAt }
}

/** Returns a key of a surface as lists show it: without its secret. */
export function presentSurfaceKey(key: SurfaceKey): ListedSurfaceKey {
  const { id, kind, prefix, scopes, createdAt, expiresAt, revokedAt } = key
  return { id, kind, prefix: keyPrefix(prefix), scopes, createdAt, expiresAt, revokedAt }
}

/** Returns an API key of a workspace as lists show it: without its secret. */
export function presentWorkspaceKey(key: WorkspaceKey): ListedWorkspaceKey {
  const { id, name, prefix, scopes, createdBy, createdAt, expiresAt, revokedAt } = key
  return { id, name, prefix: keyPrefix(prefix), scopes, createdBy, createdAt, expiresAt, revokedAt }
}
