import type { LocalSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { PERMISSIONS, type SurfaceKey } from '../../../schemas/records/directory.ts'
import { type Directory, newId } from '../../../shared/directory/directory.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { signLocalSession } from '../../../shared/ids/local-session-token.ts'

/** A surface with the credentials that a customer has. */
export interface HostileTenant {
  readonly workspaceId: string
  readonly slug: string
  readonly surfaceId: string
  readonly publicKey: string
  readonly secretKey: string
  readonly sessionToken: string
}

const USER_ID = 'user_customer'

/** Creates a surface with its keys in a new workspace, or in that of another tenant. */
export async function addTenant(
  directory: Directory,
  secrets: LocalSecrets,
  neighbour?: HostileTenant,
): Promise<HostileTenant> {
  const createdAt = new Date().toISOString()
  const workspaceId = neighbour?.workspaceId ?? newId('ws')
  const slug = neighbour?.slug ?? `w-${workspaceId.slice(3)}`
  if (neighbour === undefined) {
    await directory.putWorkspace({ version: 1, id: workspaceId, slug, name: slug, createdAt })
    await directory.createUser({ version: 1, id: USER_ID, email: null, name: USER_ID, createdAt })
    await directory.putMember({ version: 1, workspaceId, userId: USER_ID, permissions: [...PERMISSIONS] })
  }
  const surfaceId = newId('srf')
  await directory.putSurface({ version: 1, id: surfaceId, workspaceId, name: 'surface', createdAt })
  const makeKey = async (kind: SurfaceKey['kind']) => {
    const key = generateKey(kind)
    await directory.putSurfaceKey({
      version: 1,
      id: newId('key'),
      kind,
      digest: digestOf(key),
      prefix: key.slice(0, 6),
      workspaceId,
      surfaceId,
      scopes: kind === 'secret' ? ['release:write'] : [],
      createdAt,
      expiresAt: null,
      revokedAt: null,
    })
    return key
  }
  const nowSeconds = Math.floor(Date.now() / 1_000)
  return {
    workspaceId,
    slug,
    surfaceId,
    publicKey: await makeKey('public'),
    secretKey: await makeKey('secret'),
    sessionToken: await signLocalSession({
      privateKey: secrets.authPrivateKey,
      userId: USER_ID,
      org: slug,
      issuedAt: nowSeconds,
      expiresAt: nowSeconds + 86_400,
    }),
  }
}
