import type { Problem } from '../../schemas/http/problems.ts'
import { PERMISSIONS, type Permission } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Caller } from './authenticate.ts'
import type { TokenClaims, VerifyToken } from './verify-token.ts'

/** What a bearer turned out to be: one who may do something, one who is refused, or one who may not know what there is. */
export type BearerAccess =
  | {
      readonly is: 'known'
      readonly caller: Caller
      /** Why a permission is not among the caller's, to be said behind its name. */
      readonly lackOf: (permission: Permission) => string
    }
  | { readonly is: 'refused'; readonly problem: Problem }
  | { readonly is: 'stranger' }

export interface TokenAccessDeps {
  readonly verifyToken: VerifyToken
  readonly directory: Pick<Directory, 'workspaceBySlug' | 'member'>
}

const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/
const READ_PERMISSIONS: ReadonlySet<Permission> = new Set(
  PERMISSIONS.filter(permission => permission.endsWith(':read')),
)
const STRANGER = { is: 'stranger' } as const

/**
 * What a session token or a workload's token opens: its own workspace, which must be the one that the path names, where
 * it names one. A user has the permissions of the membership there, a workload may read.
 */
export function createTokenAccess({ verifyToken, directory }: TokenAccessDeps) {
  /** Undefined for a stranger. */
  async function permissionsIn(workspaceId: string, claims: TokenClaims): Promise<ReadonlySet<Permission> | undefined> {
    if (claims.kind === 'workload') return READ_PERMISSIONS
    const member = await directory.member(workspaceId, claims.subject)
    return member && new Set(member.permissions)
  }

  return async (authorization: string | undefined, workspaceSlug: string | undefined): Promise<BearerAccess> => {
    const verdict = await verifyToken(authorization)
    if (!verdict.ok) return { is: 'refused', problem: { code: 'AUTH_MISSING', message: verdict.reason } }
    const { org, subject } = verdict.claims
    if (org === undefined) {
      return { is: 'refused', problem: { code: 'AUTH_ORG_REQUIRED', message: 'the token has no claim "org"' } }
    }
    if (!SLUG.test(org) || (workspaceSlug !== undefined && workspaceSlug !== org)) return STRANGER
    const workspace = await directory.workspaceBySlug(org)
    const permissions = workspace && (await permissionsIn(workspace.id, verdict.claims))
    if (!workspace || !permissions) return STRANGER
    return { is: 'known', caller: { workspaceId: workspace.id, userId: subject, permissions }, lackOf: () => '' }
  }
}
