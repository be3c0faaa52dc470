import type { Operation } from '../../schemas/http/operation.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { FairShares } from '../../shared/concurrency/fair-shares.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Reply } from '../../shared/http/route.ts'
import { problemReply } from '../../shared/http/route.ts'

/**
 * Resources that all callers of the process share, so that no workspace takes them from the others
 * (docs/api/backpressure.md#read-shares).
 */
export interface ReadShares {
  /** Requests in progress. */
  readonly requests: FairSlots
  /** Bytes of large responses that their clients have not read yet. */
  readonly replyBytes: FairShares
}

/** A request that needs a share. */
interface SharedRequest {
  /** The id of the workspace, or one of all its surfaces. Requests with the same owner have one share together. */
  readonly owner: string
  readonly operation: Pick<Operation, 'tag'>
  /** Fires when the time of the request is over or its client has left. */
  readonly signal: AbortSignal
}

/** A response of at most this size is not counted: the socket takes it at once. */
const COUNTED_REPLY_BYTES = 64 * 1024

/** Runs a request within the share of its owner, and returns its reply, or the refusal of a request that had no turn. */
export async function withinShares(
  shares: ReadShares,
  { owner, operation, signal }: SharedRequest,
  run: () => Promise<Reply>,
): Promise<Reply> {
  const slot = await shares.requests.acquire(owner, signal)
  if (slot === undefined) return overShare('the workspace has too many requests in progress', operation)
  try {
    return countedReply(await run(), shares.replyBytes, owner, operation)
  } finally {
    // ClickHouse notices after a moment that a client has left. Without this delay, a client that leaves at once could have
    // any number of queries there.
    if (signal.aborted) setTimeout(() => slot.release(), CANCELLATION_MS).unref()
    else slot.release()
  }
}

/** Time after which a query of an abandoned request has ended: the server looks for its client every 100 ms. */
const CANCELLATION_MS = 500

/**
 * Returns the refusal of a request over the share of its workspace, in the name of the service that a client waits for.
 * `reason` names what the workspace has too much of.
 */
export function overShareProblem(reason: string, { tag }: Pick<Operation, 'tag'>): Problem {
  const service = tag === 'releases' ? 'frontier-buildtime' : 'frontier-runtime'
  const message = `${reason}: retry after the delay`
  return { code: 'INGEST_BACKPRESSURE', message, retryAfterSeconds: 2, service }
}

function overShare(reason: string, operation: Pick<Operation, 'tag'>): Reply {
  return problemReply(overShareProblem(reason, operation))
}

/** Counts the bytes of a large reply until its client has read them or has left. */
function countedReply(reply: Reply, shares: FairShares, owner: string, operation: Pick<Operation, 'tag'>): Reply {
  const { body } = reply
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return reply
  if (body.length <= COUNTED_REPLY_BYTES) return reply
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (!shares.take(owner, bytes.length)) {
    return overShare('the clients of the workspace have too many bytes of responses still to read', operation)
  }
  return { ...reply, body: bytes, onEnd: () => shares.give(owner, bytes.length) }
}
