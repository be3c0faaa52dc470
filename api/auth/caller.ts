import type { Credential } from '../../schemas/http/credentials.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { Permission } from '../../schemas/records/directory.ts'
import type { IdentifiedRequest } from '../../shared/http/route.ts'

/** The rules by which one operation accepts its callers. */
export interface Guard {
  /** The caller needs at least one of these permissions. */
  readonly permissions: readonly [Permission, ...Permission[]]
  /** Kinds of credentials that are accepted. */
  readonly credentials: readonly Credential[]
  /** The resource whose metadata a challenge names. */
  readonly resourcePath: ResourcePath
  /** Returned, with a text of its own, to a caller who is not a member of the workspace: it is unknown whether that exists. */
  readonly notFound: Problem
  /** Returned when the token, the key or the membership cannot be looked up. */
  readonly unavailable: Problem
}

/** Paths of the resources that have metadata of their own: the API, and the one of agents. */
export type ResourcePath = '' | '/mcp'

/** What a request presents: its credential, and the address at which its client knows the service. */
export interface Presented {
  readonly authorization: string | undefined
  readonly host: string | undefined
  /** Whether a proxy states that its client uses TLS. */
  readonly isSecure: boolean
}

/** An authenticated caller, in the one workspace that the request is about. */
export interface Caller {
  readonly workspaceId: string
  /** The signed-in user, the creator of a workspace key, or the subject of a workload's token. */
  readonly userId: string
  /** The id of the workspace key that was presented, or null for a token. */
  readonly apiKeyId: string | null
  /** Permissions that the caller has in the workspace now. */
  readonly permissions: ReadonlySet<Permission>
}

/** The result of a check: the caller, or the problem to return. */
export type Access = { readonly ok: true; readonly caller: Caller } | { readonly ok: false; readonly problem: Problem }

/**
 * Checks a credential. `workspaceSlug` is the workspace that the path of the request names, if it names one.
 * `request` is named in the log.
 */
export type Authenticate = (
  presented: Presented,
  guard: Guard,
  workspaceSlug?: string,
  request?: IdentifiedRequest,
) => Promise<Access>

/** The result of looking up a credential, before its permissions are checked. */
export type BearerAccess =
  | {
      readonly is: 'known'
      readonly caller: Caller
      /** Explains why a permission is missing, in text that follows the name of the permission. */
      readonly reasonForLack: (permission: Permission) => string
    }
  | { readonly is: 'refused'; readonly problem: Problem }
  /**
   * The caller is not a member of the workspace, and must not learn whether it exists. `isOfToken` is true if the token alone names
   * it, not the path.
   */
  | { readonly is: 'notAMember'; readonly isOfToken: boolean }
