import type { ClickHouseClient } from '../clickhouse/client.ts'
import { type ReceiptRow, selectReceipt } from '../clickhouse/queries/select-receipt.ts'
import type { Problem } from '../schemas/http/problems.ts'
import { type Receipt, type ReceiptAnswer, type ReceiptStatus, readReceipt } from '../schemas/http/receipts.ts'
import { PERMISSIONS, type Permission } from '../schemas/records/directory.ts'
import type { QueueLoss } from '../schemas/records/installation.ts'
import { DAY_MS } from '../schemas/units.ts'
import type { Directory } from '../shared/directory/directory.ts'
import { operationRoute } from '../shared/http/operation-route.ts'
import { otherParameterFault } from '../shared/http/parse-query.ts'
import { type IdentifiedRequest, problemReply, type Reply, type Route } from '../shared/http/route.ts'
import { openReceiptId } from '../shared/ids/receipt.ts'
import { DROPPED, detailOf, labelOf, type RefusalLabel, type RejectionLabel } from '../shared/runtime/reason.ts'
import type { Guard, Presented } from './auth/caller.ts'
import { presentedBy } from './auth/protected-resource.ts'
import { type PresentedSurfaceKey, presentedSurfaceKey, surfaceKeyAccess } from './auth/surface-key-access.ts'
import { queryDirectory } from './http/directory.ts'
import { rfc3339FromUnixMs } from './http/format-time.ts'
import type { GuardedRouteDeps } from './http/guarded-route.ts'
import { invalid, type Outcome, okReply, refusalReply, renderOutcome, replyUnlessUnavailable } from './http/outcome.ts'
import { withinShares } from './http/read-shares.ts'
import { notFound, type Resource } from './http/resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'effectiveSurfaceKey'>
  readonly now: () => number
  /**
   * Returns the keys that may have sealed the id of a receipt, the current one first. They are read each time, because a rotation
   * or a move of the installation changes them.
   */
  readonly receiptSecrets: () => Promise<readonly Buffer[]>
  /** Returns the losses of the queues that are known. */
  readonly queueLosses: () => Promise<readonly QueueLoss[]>
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
  message: 'a public key, a secret key, an API key or a token is required',
}

/** Accepts a token or an API key with any permission to read stored data, because receipts only show that data was stored. */
const GUARD: Guard = {
  permissions: PERMISSIONS.filter(permission => permission.endsWith(':read')) as [Permission, ...Permission[]],
  credentials: readReceipt.credentials,
  resourcePath: '',
  ...RECEIPT,
}

/**
 * Returns the route that reads the result of an accepted request (docs/api/receipts.md#receipts). A key reads the receipts of its
 * surface, a token or an API key those of its workspace. All other receipts look as if they did not exist. CORS is allowed,
 * because a page may read with the public key with which it has sent.
 */
export function readReceiptRoute(deps: Deps): Route {
  return operationRoute(readReceipt, {
    async accept(head, request) {
      const closed = head.closed()
      const deadline = AbortSignal.any([AbortSignal.timeout(deps.queryTimeoutMs), closed])
      const id = head.param('receiptId')
      const otherFault = otherParameterFault(readReceipt, head.rawQuery(), ['public_key'])
      const presented = presentedBy(head)
      const key = presentedSurfaceKey(head)
      if (key === undefined && presented.authorization === undefined) return problemReply(ABSENT)
      const { unavailable } = RECEIPT
      const makeReply = () => readAs(deps, { presented, key, request }, { id, otherFault }, deadline)
      const { logger } = deps
      return replyUnlessUnavailable(makeReply, { operation: readReceipt, unavailable, logger, request, closed })
    },
  })
}

interface PresentedCredential {
  readonly presented: Presented
  readonly key: PresentedSurfaceKey | undefined
  readonly request: IdentifiedRequest
}

async function readAs(
  deps: Deps,
  credential: PresentedCredential,
  { id, otherFault }: { readonly id: string; readonly otherFault: string | undefined },
  deadline: AbortSignal,
): Promise<Reply> {
  const reader = await readerOf(deps, credential)
  if (!reader.ok) return refusalReply(reader.problem, readReceipt)
  if (otherFault !== undefined) return refusalReply(invalid(otherFault).problem, readReceipt)
  const { workspaceId, surfaceId } = reader.value
  // A public key is on every page, so the requests with keys of surfaces have a share of their own. It is one for all
  // surfaces, because a workspace may have thousands.
  const owner = surfaceId === undefined ? workspaceId : `${workspaceId}/surfaces`
  return withinShares(deps.shares, { owner, operation: readReceipt, signal: deadline }, async () => {
    const receipt = await loadReceipt(deps, reader.value, id, deadline)
    const outcome: Outcome<ReceiptAnswer> = receipt ? { ok: true, value: { receipt } } : notFound(RECEIPT)
    return renderOutcome(outcome, { operation: readReceipt, reply: okReply })
  })
}

async function readerOf(deps: Deps, { presented, key, request }: PresentedCredential): Promise<Outcome<ReceiptReader>> {
  if (key === undefined) {
    const access = await deps.authenticate(presented, GUARD, undefined, request)
    return access.ok ? { ok: true, value: { workspaceId: access.caller.workspaceId } } : access
  }
  const access = await queryDirectory(surfaceKeyAccess(deps, key))
  if (!access.ok) return access
  const { workspaceId, surfaceId } = access.key
  return { ok: true, value: { workspaceId, surfaceId } }
}

/** The reader of a receipt. */
interface ReceiptReader {
  readonly workspaceId: string
  /** Set for surface keys, which may read only the receipts of their own surface. */
  readonly surfaceId?: string
}

/** Reasons whose details are from ClickHouse, S3 or an internal error. The details are logged, and not shown to clients. */
const INTERNAL_REASONS: ReadonlySet<string> = new Set<RefusalLabel>([
  'decoder_fault',
  'refused_by_clickhouse',
  'refused_by_object_store',
])

/**
 * Loads the receipt of a request. Returns undefined if the reader may not see it or if it is no longer retained. Throws what
 * `selectRows` throws.
 */
async function loadReceipt(
  deps: Deps,
  reader: ReceiptReader,
  id: string,
  abortSignal: AbortSignal,
): Promise<Receipt | undefined> {
  const { clickhouse, retentionDays, now } = deps
  const { workspaceId } = reader
  const secrets = await queryDirectory(deps.receiptSecrets())
  const opened = secrets.map(secret => openReceiptId(secret, workspaceId, id)).find(receipt => receipt !== undefined)
  if (opened === undefined || (reader.surfaceId ?? opened.surfaceId) !== opened.surfaceId) return undefined
  const { kind, surfaceId, arrivedAtMs } = opened
  const rows = await selectReceipt(clickhouse, { workspaceId, ...opened }, abortSignal)
  // Rows expire with their day, so a missing row of such an old request may mean anything.
  const dayMs = Math.floor(arrivedAtMs / DAY_MS) * DAY_MS
  if (rows.length === 0 && now() >= dayMs + retentionDays * DAY_MS) return undefined
  const receipt = { id, kind, surfaceId, receivedAt: rfc3339FromUnixMs(arrivedAtMs) }
  if (rows.length > 0) return { ...receipt, ...presentOutcomes(rows) }
  const losses = await queryDirectory(deps.queueLosses())
  const isLost = losses.some(({ foundAtMs }) => arrivedAtMs < foundAtMs)
  return { ...receipt, status: isLost ? 'lost_or_unknown' : 'queued' }
}

type Result = Pick<
  Receipt,
  'status' | 'storedAt' | 'reason' | 'rejected' | 'leftOut' | 'dropped' | 'objectKey' | 'history'
>

/**
 * Presents the outcome of a request that was possibly replayed. A request that is stored in part stays stored, whatever
 * becomes of the rest. The history is left out if there was no replay.
 */
function presentOutcomes(rows: readonly ReceiptRow[]): Result {
  const outcomes = rows.map(presentOutcome)
  const last = outcomes.at(-1) as Result
  if (outcomes.length === 1) return last
  const stored = outcomes.findLast(({ status }) => status === 'stored')
  const rejected = stored !== last && outcomes.findLast(outcome => outcome.rejected)?.rejected
  const shown = stored ? { ...stored, ...(rejected && { rejected }) } : last
  return { ...shown, history: rows.flatMap((row, i) => historyOf(row, outcomes[i] as Result)) }
}

function historyOf(
  { replayedAtMs, storedAtMs }: ReceiptRow,
  { status, reason }: Result,
): NonNullable<Receipt['history']> {
  const outcome = { status, at: rfc3339FromUnixMs(Number(storedAtMs)), ...(reason !== undefined && { reason }) }
  const replayed = Number(replayedAtMs)
  return replayed === 0 ? [outcome] : [{ status: 'replayed', at: rfc3339FromUnixMs(replayed) }, outcome]
}

function presentOutcome(row: ReceiptRow): Result {
  const { reason, storedAtMs } = row
  const labelled = (label: string) => row.rejections.filter(rejection => labelOf(rejection.reason) === label)
  const [fields, dropped] = [labelled(LEFT_OUT), labelled(DROPPED)]
  const rejections = row.rejections.filter(rejection => !fields.includes(rejection) && !dropped.includes(rejection))
  const leftOut = fields.map(rejection => presentLeftOut(detailOf(rejection.reason)))
  const objectKey = row.objectKey || rejections.find(({ object_key: key }) => key !== '')?.object_key
  const letter = {
    ...(rejections.length > 0 && {
      rejected: rejections.map(({ reason: name, records }) => ({ reason: name, count: Number(records) })),
    }),
    ...(leftOut.length > 0 && { leftOut }),
    ...(dropped.length > 0 && {
      dropped: dropped.map(({ reason: name, records }) => ({ rule: detailOf(name), count: Number(records) })),
    }),
    ...(objectKey && { objectKey }),
  }
  if (reason === '') return { status: 'stored', storedAt: rfc3339FromUnixMs(Number(storedAtMs)), ...letter }
  const label = labelOf(reason)
  return { status: statusOf(row), reason: INTERNAL_REASONS.has(label) ? label : reason, ...letter }
}

/** Label of a field that is left out, followed by its fault. */
const LEFT_OUT: RejectionLabel = 'field_left_out'

/** Returns the field that the text of a fault begins with, and the rest as the reason. */
function presentLeftOut(fault: string): NonNullable<Receipt['leftOut']>[number] {
  const end = fault.indexOf(' ')
  return { field: fault.slice(0, end), reason: fault.slice(end + 1) }
}

function statusOf({ isDiscarded, objectKey }: ReceiptRow): ReceiptStatus {
  if (isDiscarded) return 'discarded'
  return objectKey === '' ? 'refused' : 'dead_lettered'
}
