import type { Problem } from '../../schemas/http/problems.ts'
import type { Permission } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { type BearerAccess, createTokenAccess } from './token-access.ts'
import type { VerifyToken } from './verify-token.ts'
import { createWorkspaceKeyAccess, presentedWorkspaceKey } from './workspace-key-access.ts'

/** How one operation is guarded. Every operation takes session tokens and, as far as it only reads, workload identities. */
export interface Guard {
  /** What the caller needs; of several, one is enough. */
  readonly permission: Permission | readonly Permission[]
  /** Workspace keys are taken too. */
  readonly takesWorkspaceKeys?: boolean
  /** What a stranger to the workspace is told: that the thing does not exist. */
  readonly notFound: Problem
  /** What is told when tokens, keys or members cannot be looked up. */
  readonly unavailable: Problem
}

/** Who calls, within the one workspace that the call is about. */
export interface Caller {
  readonly workspaceId: string
  /** The signed-in user; the creator of a workspace key; what a workload is called. */
  readonly userId: string
  /** What the caller may do there now. */
  readonly permissions: ReadonlySet<Permission>
}

export type Access = { readonly ok: true; readonly caller: Caller } | { readonly ok: false; readonly problem: Problem }

/** Tells for an `Authorization` header who calls, or the problem to answer with. `workspaceSlug`: the one that the path names. */
export type Authenticate = (authorization: string | undefined, guard: Guard, workspaceSlug?: string) => Promise<Access>

export interface AuthenticateDeps {
  readonly verifyToken: VerifyToken
  readonly directory: Pick<Directory, 'workspaceBySlug' | 'member' | 'workspaceKeyByDigest'>
  readonly logger: Logger
  readonly now: () => number
}

/**
 * The rule of CONTRACT section 2 for every operation of the API. Keys, workspaces and members are read from the control
 * store each time, two or three GETs of Redis: what was revoked or taken away is gone with the next request.
 */
export function createAuthenticate({ verifyToken, directory, logger, now }: AuthenticateDeps): Authenticate {
  const accessByToken = createTokenAccess({ verifyToken, directory })
  const accessByKey = createWorkspaceKeyAccess({ directory, now })

  function accessBy(
    authorization: string | undefined,
    guard: Guard,
    workspaceSlug: string | undefined,
  ): Promise<BearerAccess> | BearerAccess {
    const key = presentedWorkspaceKey(authorization)
    if (key === undefined) return accessByToken(authorization, workspaceSlug)
    if (guard.takesWorkspaceKeys) return accessByKey(key)
    return { is: 'refused', problem: { code: 'AUTH_MISSING', message: 'a workspace key is not accepted here' } }
  }

  return async (authorization, guard, workspaceSlug) => {
    try {
      const access = await accessBy(authorization, guard, workspaceSlug)
      if (access.is === 'stranger') return { ok: false, problem: guard.notFound }
      if (access.is === 'refused') return { ok: false, problem: access.problem }
      const { caller, lackOf } = access
      const accepted = [guard.permission].flat()
      if (accepted.some(permission => caller.permissions.has(permission))) return { ok: true, caller }
      const [first] = accepted as [Permission]
      const message = `the permission ${accepted.join(' or ')} is needed${lackOf(first)}`
      return { ok: false, problem: { code: 'PERMISSION_DENIED', message } }
    } catch (error) {
      logger.warn({ error: describeError(error) }, 'a credential could not be checked')
      return { ok: false, problem: guard.unavailable }
    }
  }
}
