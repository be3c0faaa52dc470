import type { Problem } from '../../schemas/http/problems.ts'
import type { IngestQueue } from '../../schemas/queues/names.ts'
import type { Reply } from '../../shared/http/route.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { IngestDeps } from '../routes.ts'

/** Answers with `reply` and a receipt once Redis has the frame on disk. The body is copied before this returns its promise. */
export async function acceptFrame(
  deps: IngestDeps,
  queue: IngestQueue,
  frame: PayloadFrame,
  reply: Reply,
  renderProblem: (problem: Problem) => Reply,
): Promise<Reply> {
  const bytes = frame.body.length
  let receiptId: string
  try {
    const accepted = deps.commits[queue].enqueue(frame)
    receiptId = accepted.receiptId
    await accepted.confirmed
  } catch (error) {
    deps.logger.debug({ queue, error: describeError(error) }, 'a request could not be enqueued')
    return renderProblem(NOT_STORED)
  }
  deps.admission.admitted(queue, bytes)
  return withReceipt(reply, receiptId)
}

/** The answer to a request that was accepted, whatever it says. */
export function withReceipt(reply: Reply, receiptId: string): Reply {
  return { ...reply, receiptId }
}

export const NOT_STORED: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'the request could not be stored; send it again',
  retryAfterSeconds: 1,
}
