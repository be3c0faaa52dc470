import { PERMISSIONS, type SurfaceKey } from '../../schemas/control.ts'
import type { ControlStore } from '../../shared/control-store.ts'
import { digestOf } from '../../shared/credentials.ts'
import type { LocalSecrets } from './secrets.ts'

/**
 * Puts the first workspace, its user with every permission, a surface and its two keys into the control store.
 * Only what is not there is put: a key that was revoked since stays revoked.
 */
export async function provision(store: ControlStore, secrets: LocalSecrets): Promise<void> {
  const { workspaceId, surfaceId, userId, createdAt } = secrets
  const owner = await store.workspaceBySlug(secrets.workspaceSlug)
  if (owner && owner.id !== workspaceId) {
    throw new Error(`the workspace "${owner.slug}" of this Redis was made with the keys of another LOCAL_DIR: use that`)
  }
  if (!(await store.workspaceById(workspaceId))) {
    await store.putWorkspace({ version: 1, id: workspaceId, slug: secrets.workspaceSlug, name: 'Local', createdAt })
  }
  if (!(await store.member(workspaceId, userId))) {
    await store.putMember({ version: 1, workspaceId, userId, permissions: [...PERMISSIONS] })
  }
  if (!(await store.surface(workspaceId, surfaceId))) {
    await store.putSurface({ version: 1, id: surfaceId, workspaceId, name: 'Local surface', createdAt })
  }
  for (const key of [surfaceKey('public', secrets), surfaceKey('secret', secrets)]) {
    if (!(await store.surfaceKeyByDigest(key.digest))) await store.putSurfaceKey(key)
  }
}

function surfaceKey(kind: SurfaceKey['kind'], secrets: LocalSecrets): SurfaceKey {
  const key = kind === 'public' ? secrets.publicKey : secrets.secretKey
  return {
    version: 1,
    id: kind === 'public' ? secrets.publicKeyId : secrets.secretKeyId,
    kind,
    digest: digestOf(key),
    prefix: key.slice(0, 6),
    workspaceId: secrets.workspaceId,
    surfaceId: secrets.surfaceId,
    scopes: kind === 'secret' ? ['release:write'] : [],
    createdAt: secrets.createdAt,
    expiresAt: null,
    revokedAt: null,
  }
}
