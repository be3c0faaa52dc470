import type { ListedSurface, ListedSurfaceKey, ListedWorkspaceKey } from '../../schemas/http/workspaces/schemas.ts'
import type { Surface, SurfaceKey, WorkspaceKey } from '../../schemas/records/directory.ts'

/** What is shown of directory records. Of a key never more than three characters behind what its kind begins with. */

const PREFIX_CHARACTERS = 6

export function presentSurface({ id, name, createdAt }: Surface): ListedSurface {
  return { id, name, createdAt }
}

export function presentSurfaceKey(key: SurfaceKey): ListedSurfaceKey {
  const { id, kind, prefix, scopes, createdAt, expiresAt, revokedAt } = key
  return { id, kind, prefix: prefix.slice(0, PREFIX_CHARACTERS), scopes, createdAt, expiresAt, revokedAt }
}

export function presentWorkspaceKey(key: WorkspaceKey): ListedWorkspaceKey {
  const { id, name, prefix, scopes, createdBy, createdAt, expiresAt, revokedAt } = key
  return { id, name, prefix: prefix.slice(0, PREFIX_CHARACTERS), scopes, createdBy, createdAt, expiresAt, revokedAt }
}

/** What is kept of a key's text, to know it again by. */
export function keyPrefix(key: string): string {
  return key.slice(0, PREFIX_CHARACTERS)
}
