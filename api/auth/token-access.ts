import { PERMISSIONS, type Permission } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { setBounded } from '../../shared/memory/bounded-map.ts'
import type { BearerAccess } from './caller.ts'
import type { TokenClaims, VerifyToken } from './verify-token.ts'

interface Deps {
  readonly verifyToken: VerifyToken
  readonly directory: Pick<Directory, 'workspaceBySlug' | 'member'>
  /** Ids that workspaces had when their slug was looked up last. */
  readonly lastIds: Map<string, string>
}

const LAST_IDS_MAX = 10_000
const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/
const READ_PERMISSIONS: ReadonlySet<Permission> = new Set(
  PERMISSIONS.filter(permission => permission.endsWith(':read')),
)

/**
 * Looks up the bearer of a session token or a workload's token. The token opens only the workspace of its claim `org`. If
 * the path names a workspace, both must be the same. Workspace and membership are looked up at the same time, the membership
 * under the last known id of the workspace, and again if that has changed.
 */
export async function accessByToken(
  { verifyToken, directory, lastIds }: Deps,
  authorization: string,
  workspaceSlug: string | undefined,
): Promise<BearerAccess> {
  const verdict = await verifyToken(authorization)
  if (!verdict.ok) return { is: 'refused', problem: { code: 'AUTH_MISSING', message: verdict.reason } }
  const { org, subject } = verdict.claims
  if (org === undefined) {
    return { is: 'refused', problem: { code: 'AUTH_ORG_REQUIRED', message: 'the token has no claim "org"' } }
  }
  const notAMember = { is: 'notAMember', isOfToken: workspaceSlug === undefined } as const
  if (!SLUG.test(org) || (workspaceSlug !== undefined && workspaceSlug !== org)) return notAMember
  const lastId = lastIds.get(org)
  const early = lastId === undefined ? undefined : permissionsIn(directory, lastId, verdict.claims)
  // If the id has changed, nothing awaits this, and its failure must not count as unhandled.
  early?.catch(() => {})
  const workspace = await directory.workspaceBySlug(org)
  if (workspace === undefined) return notAMember
  if (workspace.id !== lastId) setBounded(lastIds, LAST_IDS_MAX, org, workspace.id)
  const permissions = await (workspace.id === lastId && early !== undefined
    ? early
    : permissionsIn(directory, workspace.id, verdict.claims))
  if (permissions === undefined) return notAMember
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
