import type { Settlement } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { deadLetterKey } from '../../shared/object-store/object-keys.ts'
import { encodePayload, type PayloadFrame, withJsonBody } from '../../shared/queue/payload-frame.ts'
import type { RefusedFrame } from '../batch/open-batch.ts'
import type { Move } from '../queue/payload-store.ts'

/** A request that a job is done with; with a refusal where it is not stored. */
export interface SettledRequest extends Pick<Settlement, 'refusal'> {
  readonly frame: PayloadFrame
}

/** A request that goes to the dead letters. */
export function settleRefused(queue: QueueName, { frame, jobId, index, reason }: RefusedFrame): SettledRequest {
  return { frame, refusal: { reason, objectKey: deadLetterKey({ ...frame, queue, jobId, index }) } }
}

/**
 * What a pool that writes no rows has to pass on when it finishes a job, so that `ingest_log` tells of each request.
 * Nothing for requests without a receipt. Its id derives from the job's: repeating the move adds nothing.
 */
export function settleRequests(
  { jobId, kind }: Pick<Settlement, 'jobId' | 'kind'>,
  requests: readonly SettledRequest[],
): Move[] {
  const frames = requests
    .filter(({ frame }) => frame.receipt !== undefined)
    .map(({ frame, refusal }) => {
      const settlement: Settlement = { kind, jobId, bytes: frame.body.length, ...(refusal && { refusal }) }
      return withJsonBody(frame, settlement)
    })
  if (frames.length === 0) return []
  return [{ queue: 'receipts', jobId: `settled-${jobId}`, payload: encodePayload(frames), frames: frames.length }]
}
