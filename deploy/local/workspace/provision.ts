import { PERMISSIONS, type SurfaceKey } from '../../../schemas/records/directory.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { digestOf } from '../../../shared/ids/credentials.ts'
import type { LocalSecrets } from './secrets.ts'

/**
 * Stores the first workspace, its user with every permission, a surface and its two keys in the directory. Existing
 * records do not change, so a revoked key stays revoked. Existing records except keys are written again as they are,
 * because an older installation may lack the indexes that are written with each record.
 */
export async function provision(store: Directory, secrets: LocalSecrets): Promise<void> {
  const { workspaceId, surfaceId, userId, workspaceSlug: slug, createdAt } = secrets
  const workspace = await store.workspaceById(workspaceId)
  const stored = await store.putWorkspace(workspace ?? { version: 1, id: workspaceId, slug, name: 'Local', createdAt })
  if (stored === 'slug_taken') {
    throw new Error(
      `the workspace "${slug}" in this Redis was created with the keys of another LOCAL_DIR: use that LOCAL_DIR, or another Redis`,
    )
  }
  await store.createUser({ version: 1, id: userId, email: null, name: 'Local user', createdAt })
  const member = await store.member(workspaceId, userId)
  await store.putMember(member ?? { version: 1, workspaceId, userId, permissions: [...PERMISSIONS] })
  const surface = await store.surface(workspaceId, surfaceId)
  const isDeleted = !surface && (await store.surfaceIds(workspaceId)).includes(surfaceId)
  if (!isDeleted) {
    await store.putSurface(surface ?? { version: 1, id: surfaceId, workspaceId, name: 'Local surface', createdAt })
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
    ...(kind === 'public' && { publicKey: key }),
    workspaceId: secrets.workspaceId,
    surfaceId: secrets.surfaceId,
    scopes: kind === 'secret' ? ['release:write'] : [],
    createdAt: secrets.createdAt,
    expiresAt: null,
    revokedAt: null,
  }
}
