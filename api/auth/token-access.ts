import { PERMISSIONS, type Permission } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { BearerAccess } from './caller.ts'
import type { TokenClaims, VerifyToken } from './verify-token.ts'

interface Deps {
  readonly verifyToken: VerifyToken
  readonly directory: Pick<Directory, 'workspaceBySlug' | 'member'>
}

const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/
const READ_PERMISSIONS: ReadonlySet<Permission> = new Set(
  PERMISSIONS.filter(permission => permission.endsWith(':read')),
)
const NOT_A_MEMBER = { is: 'notAMember' } as const

/**
 * Looks up the bearer of a session token or a workload's token. The token opens only the workspace of its claim `org`. If
 * the path names a workspace, both must be the same.
 */
export async function accessByToken(
  { verifyToken, directory }: Deps,
  authorization: string | undefined,
  workspaceSlug: string | undefined,
): Promise<BearerAccess> {
  const verdict = await verifyToken(authorization)
  if (!verdict.ok) {
    const missing = authorization === undefined ? { missing: 'bearer' as const } : {}
    return { is: 'refused', problem: { code: 'AUTH_MISSING', message: verdict.reason, ...missing } }
  }
  const { org, subject } = verdict.claims
  if (org === undefined) {
    return { is: 'refused', problem: { code: 'AUTH_ORG_REQUIRED', message: 'the token has no claim "org"' } }
  }
  if (!SLUG.test(org) || (workspaceSlug !== undefined && workspaceSlug !== org)) return NOT_A_MEMBER
  const workspace = await directory.workspaceBySlug(org)
  if (workspace === undefined) return NOT_A_MEMBER
  const permissions = await permissionsIn(directory, workspace.id, verdict.claims)
  if (permissions === undefined) return NOT_A_MEMBER
  const caller = { workspaceId: workspace.id, userId: subject, apiKeyId: null, permissions }
  return { is: 'known', caller, reasonForLack: () => '' }
}

/**
 * Returns the permissions of the membership for a user, and all read permissions for a workload. Returns undefined if the
 * user is not a member of the workspace.
 */
async function permissionsIn(
  directory: Deps['directory'],
  workspaceId: string,
  claims: TokenClaims,
): Promise<ReadonlySet<Permission> | undefined> {
  if (claims.kind === 'workload') return READ_PERMISSIONS
  const member = await directory.member(workspaceId, claims.subject)
  return member && new Set(member.permissions)
}
