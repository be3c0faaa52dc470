import { PERMISSIONS, type Permission } from '../schemas/control.ts'
import type { Problem } from '../schemas/problems.ts'
import type { ControlStore } from '../shared/control-store.ts'
import { describeError } from '../shared/errors.ts'
import type { Logger } from '../shared/logger.ts'
import { createLookupCache } from './lookup-cache.ts'
import type { TokenClaims, VerifyToken } from './verify-token.ts'

/** How one operation is guarded. */
export interface Guard {
  readonly permission: Permission
  /** What a stranger to the workspace is told: that the thing does not exist. */
  readonly notFound: Problem
  /** What is told when tokens or members cannot be looked up. */
  readonly unavailable: Problem
}

export type Access = { ok: true; workspaceId: string } | { ok: false; problem: Problem }

/** Tells for an `Authorization` header which workspace the caller may read in, or the problem to answer with. */
export type Authenticate = (authorization: string | undefined, guard: Guard) => Promise<Access>

export interface AuthenticateDeps {
  readonly verifyToken: VerifyToken
  readonly controlStore: Pick<ControlStore, 'workspaceBySlug' | 'member'>
  readonly logger: Logger
  readonly now: () => number
}

const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/
const READ_PERMISSIONS: ReadonlySet<Permission> = new Set(
  PERMISSIONS.filter(permission => permission.endsWith(':read')),
)

/** A workspace or a membership that changed counts within 10 s; a new one within one. */
const CACHE = { maxAgeMs: 10_000, absentMaxAgeMs: 1_000, maxEntries: 10_000 }

export function createAuthenticate({ verifyToken, controlStore, logger, now }: AuthenticateDeps): Authenticate {
  const workspaceBySlug = createLookupCache(slug => controlStore.workspaceBySlug(slug), { ...CACHE, now })
  const memberByKey = createLookupCache(
    key => {
      const [workspaceId = '', userId = ''] = JSON.parse(key) as [string?, string?]
      return controlStore.member(workspaceId, userId)
    },
    { ...CACHE, now },
  )

  /** What the holder of a token may do in its workspace; undefined for a stranger. */
  async function permissionsIn(workspaceId: string, claims: TokenClaims): Promise<ReadonlySet<Permission> | undefined> {
    if (claims.kind === 'workload') return READ_PERMISSIONS
    const member = await memberByKey(JSON.stringify([workspaceId, claims.subject]))
    return member && new Set(member.permissions)
  }

  return async (authorization, { permission, notFound, unavailable }) => {
    try {
      const verdict = await verifyToken(authorization)
      if (!verdict.ok) return refuse({ code: 'AUTH_MISSING', message: verdict.reason })
      const { org } = verdict.claims
      if (org === undefined) return refuse({ code: 'AUTH_ORG_REQUIRED', message: 'the token has no claim "org"' })

      const workspace = SLUG.test(org) ? await workspaceBySlug(org) : undefined
      const permissions = workspace && (await permissionsIn(workspace.id, verdict.claims))
      if (!workspace || !permissions) return refuse(notFound)
      if (!permissions.has(permission)) {
        return refuse({ code: 'PERMISSION_DENIED', message: `the permission ${permission} is needed` })
      }
      return { ok: true, workspaceId: workspace.id }
    } catch (error) {
      logger.warn({ error: describeError(error) }, 'a token could not be checked')
      return refuse(unavailable)
    }
  }
}

function refuse(problem: Problem): Access {
  return { ok: false, problem }
}
