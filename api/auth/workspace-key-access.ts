import type { Permission } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { digestOf, isWellFormedKey } from '../../shared/ids/credentials.ts'
import { keyState } from '../../shared/ids/key-state.ts'
import type { BearerAccess } from './token-access.ts'

export interface WorkspaceKeyAccessDeps {
  readonly directory: Pick<Directory, 'workspaceKeyByDigest' | 'member'>
  readonly now: () => number
}

/** The workspace key of an `Authorization` header, well-formed or not; undefined when it holds something else. */
export function presentedWorkspaceKey(authorization: string | undefined): string | undefined {
  return /^Bearer +(wk_\S*) *$/i.exec(authorization?.slice(0, 256) ?? '')?.[1]
}

/** What a workspace key opens: its scopes, as far as its creator has these permissions at this moment (CONTRACT section 2). */
export function createWorkspaceKeyAccess({ directory, now }: WorkspaceKeyAccessDeps) {
  return async (key: string): Promise<BearerAccess> => {
    if (!isWellFormedKey('workspace', key)) return refuse('malformed')
    const record = await directory.workspaceKeyByDigest(digestOf(key))
    if (record === undefined) return refuse('unknown')
    const state = keyState(record, now())
    if (state !== 'active') return refuse(state)

    const { workspaceId, createdBy, scopes } = record
    const creator = await directory.member(workspaceId, createdBy)
    const held = new Set(creator?.permissions)
    const permissions = new Set(scopes.filter(scope => held.has(scope)))
    const lackOf = (permission: Permission) =>
      scopes.includes(permission)
        ? ': the creator of the workspace key does not have it'
        : ': it is not among the scopes of the workspace key'
    return { is: 'known', caller: { workspaceId, userId: createdBy, permissions }, lackOf }
  }
}

function refuse(state: 'malformed' | 'unknown' | 'revoked' | 'expired'): BearerAccess {
  return { is: 'refused', problem: { code: 'AUTH_MISSING', message: `the workspace key is ${state}` } }
}
