import type { Permission } from '../../schemas/records/directory.ts'
import { isWellFormedKey } from '../../schemas/records/key-form.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { digestOf } from '../../shared/ids/credentials.ts'
import type { KeyFault } from '../../shared/ids/key-problems.ts'
import { keyState } from '../../shared/ids/key-state.ts'
import { takenKinds, wrongBearer } from '../../shared/ids/wrong-kind.ts'
import type { KeyCounts } from '../../shared/queue/key-usage.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Access, Authenticate, BearerAccess, Guard, Presented, ResourcePath } from './caller.ts'
import { accessByToken } from './token-access.ts'
import type { VerifyToken } from './verify-token.ts'

interface Deps {
  readonly verifyToken: VerifyToken
  readonly directory: Pick<Directory, 'workspaceBySlug' | 'member' | 'workspaceKeyByDigest'>
  readonly counts: Pick<KeyCounts, 'of'>
  readonly logger: Logger
  readonly now: () => number
  /** Returns the address of the metadata that a challenge names, if tools can sign in. */
  readonly metadataUrl?: (presented: Presented, path: ResourcePath) => string | undefined
  /** Ids that workspaces had when their slug was looked up last. */
  readonly lastIds: Map<string, string>
}

/**
 * Creates the check of credentials for every operation of the API (docs/api/credentials.md#credentials). Keys, workspaces and
 * members are read from the directory for each request, with two or three GETs of Redis. So a revoked key or a removed
 * permission takes effect with the next request.
 */
export function createAuthenticate(options: Omit<Deps, 'lastIds'>): Authenticate {
  const deps = { ...options, lastIds: new Map<string, string>() }
  return async (presented, guard, workspaceSlug, request) => {
    try {
      const access = checkPermission(await lookUp(deps, presented.authorization, guard, workspaceSlug), guard)
      if (access.ok || access.problem.code !== 'AUTH_MISSING') return access
      const resourceMetadata = deps.metadataUrl?.(presented, guard.resourcePath)
      return { ok: false, problem: { ...access.problem, ...(resourceMetadata && { resourceMetadata }) } }
    } catch (error) {
      deps.logger.warn({ requestId: request?.requestId, ...errorFields(error) }, 'a credential could not be checked')
      return { ok: false, problem: guard.unavailable }
    }
  }
}

async function lookUp(
  deps: Deps,
  authorization: string | undefined,
  guard: Guard,
  workspaceSlug: string | undefined,
): Promise<BearerAccess> {
  if (authorization === undefined) {
    const message = `the Authorization header is absent: ${takenKinds(guard.credentials)}`
    return { is: 'refused', problem: { code: 'AUTH_MISSING', message, missing: 'bearer' } }
  }
  const message = wrongBearer(guard.credentials, authorization)
  if (message !== undefined) return { is: 'refused', problem: { code: 'AUTH_MISSING', message } }
  const key = presentedWorkspaceKey(authorization)
  return key === undefined ? accessByToken(deps, authorization, workspaceSlug) : accessByKey(deps, key)
}

function checkPermission(access: BearerAccess, { permissions, notFound }: Guard): Access {
  if (access.is === 'notAMember') {
    return { ok: false, problem: access.isOfToken ? { ...notFound, message: NOT_A_MEMBER } : notFound }
  }
  if (access.is === 'refused') return { ok: false, problem: access.problem }
  const { caller, reasonForLack } = access
  if (permissions.some(permission => caller.permissions.has(permission))) return { ok: true, caller }
  const message = `the permission ${permissions.join(' or ')} is required${reasonForLack(permissions[0])}`
  return { ok: false, problem: { code: 'PERMISSION_DENIED', message } }
}

/**
 * Message to a caller who is not a member of the workspace that the token names. It is the same for every workspace, also for one
 * that does not exist.
 */
const NOT_A_MEMBER = 'you are not a member of the workspace that the claim "org" of the token names, or there is none'

/** Returns the workspace key of an `Authorization` header, well-formed or not, or undefined if the header has another value. */
function presentedWorkspaceKey(authorization: string): string | undefined {
  return /^Bearer +(wk_\S*) *$/i.exec(authorization.slice(0, 256))?.[1]
}

/**
 * Looks up a workspace key. It grants those of its scopes that its creator has as permissions now
 * (docs/api/credentials.md#credentials).
 */
async function accessByKey({ directory, counts, now }: Deps, key: string): Promise<BearerAccess> {
  if (!isWellFormedKey('workspace', key)) return refuseKey('malformed')
  const record = await directory.workspaceKeyByDigest(digestOf(key))
  if (record === undefined) return refuseKey('unknown')
  const state = keyState(record, now())
  if (state !== 'active') return refuseKey(state)
  counts.of(record).requests++

  const { workspaceId, createdBy, scopes } = record
  const creator = await directory.member(workspaceId, createdBy)
  const ofCreator = new Set(creator?.permissions)
  const permissions = new Set(scopes.filter(scope => ofCreator.has(scope)))
  const reasonForLack = (permission: Permission) =>
    scopes.includes(permission)
      ? ', and the creator of the workspace key does not have it'
      : ', and it is not among the scopes of the workspace key'
  return { is: 'known', caller: { workspaceId, userId: createdBy, apiKeyId: record.id, permissions }, reasonForLack }
}

function refuseKey(fault: KeyFault): BearerAccess {
  return { is: 'refused', problem: { code: 'AUTH_MISSING', message: `the workspace key is ${fault}` } }
}
