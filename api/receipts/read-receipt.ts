import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import { type ReceiptAnswer, readReceipt } from '../../schemas/http/receipts.ts'
import { PERMISSIONS, type Permission } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { type IdentifiedRequest, problemReply, type Reply, type Route } from '../../shared/http/route.ts'
import type { Guard } from '../auth/caller.ts'
import { type PresentedSurfaceKey, presentedSurfaceKey, surfaceKeyAccess } from '../auth/surface-key-access.ts'
import type { GuardedRouteDeps } from '../http/guarded-route.ts'
import { type Outcome, okReply, refusalReply, renderOutcome, replyUnlessUnavailable } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { withinShares } from '../http/read-shares.ts'
import { notFound, type Resource } from '../http/resource.ts'
import { loadReceipt, type ReceiptReader } from './load-receipt.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'effectiveSurfaceKey'>
  readonly now: () => number
  /** Returns the key that seals the ids of receipts. It is read each time, because a move of the installation may change it. */
  readonly receiptSecret: () => Promise<Buffer | undefined>
  readonly retentionDays: number
}

const RECEIPT: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such receipt, or it is no longer retained' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'receipts are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}
const ABSENT: Problem = {
  code: 'AUTH_MISSING',
  missing: 'bearer',
  message: 'a public key, a secret key or a token is required',
}

/** Accepts a token with any permission to read stored data, because receipts only show that data was stored. */
const GUARD: Guard = {
  permissions: PERMISSIONS.filter(permission => permission.endsWith(':read')) as [Permission, ...Permission[]],
  acceptsWorkspaceKeys: false,
  ...RECEIPT,
}

/**
 * Returns the route that reads the result of an accepted request (docs/api/receipts.md#receipts). A key reads the receipts of its
 * surface, a token those of its workspace. All other receipts look as if they did not exist. CORS is allowed, because a page
 * may read with the public key with which it has sent.
 */
export function readReceiptRoute(deps: Deps): Route {
  return operationRoute(readReceipt, {
    async accept(head, request) {
      const closed = head.closed()
      const deadline = AbortSignal.any([AbortSignal.timeout(deps.queryTimeoutMs), closed])
      const id = head.param('receiptId')
      const authorization = head.header('authorization')
      const key = presentedSurfaceKey(head)
      if (key === undefined && authorization === undefined) return problemReply(ABSENT)
      const { unavailable } = RECEIPT
      const makeReply = () => readAs(deps, { authorization, key, request }, id, deadline)
      const { logger } = deps
      return replyUnlessUnavailable(makeReply, { operation: readReceipt, unavailable, logger, request, closed })
    },
  })
}

interface PresentedCredential {
  readonly authorization: string | undefined
  readonly key: PresentedSurfaceKey | undefined
  readonly request: IdentifiedRequest
}

async function readAs(deps: Deps, credential: PresentedCredential, id: string, deadline: AbortSignal): Promise<Reply> {
  const reader = await readerOf(deps, credential)
  if (!reader.ok) return refusalReply(reader.problem, readReceipt)
  const { workspaceId, surfaceId } = reader.value
  // A public key is on every page, so the requests with keys of surfaces have a share of their own. It is one for all
  // surfaces, because a workspace may have thousands.
  const owner = surfaceId === undefined ? workspaceId : `${workspaceId}/surfaces`
  return withinShares(deps.shares, { owner, operation: readReceipt, signal: deadline }, async () => {
    const secret = await queryDirectory(deps.receiptSecret())
    const receipt = await loadReceipt({ ...deps, secret }, reader.value, id, deadline)
    const outcome: Outcome<ReceiptAnswer> = receipt ? { ok: true, value: { receipt } } : notFound(RECEIPT)
    return renderOutcome(outcome, { operation: readReceipt, reply: okReply })
  })
}

async function readerOf(
  deps: Deps,
  { authorization, key, request }: PresentedCredential,
): Promise<Outcome<ReceiptReader>> {
  if (key === undefined) {
    const access = await deps.authenticate(authorization, GUARD, undefined, request)
    return access.ok ? { ok: true, value: { workspaceId: access.caller.workspaceId } } : access
  }
  const access = await queryDirectory(surfaceKeyAccess(deps, key))
  if (!access.ok) return access
  const { workspaceId, surfaceId } = access.key
  return { ok: true, value: { workspaceId, surfaceId } }
}
