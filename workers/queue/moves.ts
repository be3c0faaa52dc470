import { hash } from 'node:crypto'
import type { Settlement } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { PIECE_BYTES } from '../../shared/queue/large-values.ts'
import { replayedFrom } from '../../shared/queue/letters/replayed-letter.ts'
import {
  encodePayload,
  frameBytes,
  PAYLOAD_HEADER_BYTES,
  type PayloadFrame,
  withJsonBody,
} from '../../shared/queue/payload-frame.ts'
import { type Move, sharesOf } from './payloads/payload-store.ts'

/** A request that a job is done with. `refusal` is absent if the request is stored. */
export interface SettledRequest extends Pick<Settlement, 'refusal' | 'counted'> {
  readonly frame: PayloadFrame
}

/**
 * Returns the move of these frames to another queue, or nothing if there are none. The job id must derive from the id of
 * the job or batch that is finished, so that repeating the move adds nothing.
 */
export function frameMoves(
  queue: QueueName,
  jobId: string,
  frames: readonly PayloadFrame[],
  backlogLimitBytes?: number,
): Move[] {
  if (frames.length === 0) return []
  const payload = { jobId, payload: encodePayload(frames), frames: frames.length, shares: sharesOf(frames) }
  return [{ queue, ...payload, ...(backlogLimitBytes !== undefined && { backlogLimitBytes }) }]
}

/** Yields these frames in pieces, as payloads of at most 1 MiB each, unless one frame is larger. */
export function* inPieces(all: Iterable<PayloadFrame>): Generator<readonly PayloadFrame[]> {
  let frames: PayloadFrame[] = []
  let bytes = PAYLOAD_HEADER_BYTES
  for (const frame of all) {
    const size = frameBytes(frame)
    if (frames.length > 0 && bytes + size > PIECE_BYTES) {
      yield frames
      frames = []
      bytes = PAYLOAD_HEADER_BYTES
    }
    frames.push(frame)
    bytes += size
  }
  if (frames.length > 0) yield frames
}

/**
 * Returns the moves of these frames to another queue, one job for each workspace, for a queue in which workspaces take turns.
 * `jobId` must derive from the job or batch that is finished, as above.
 */
export function movesByWorkspace(
  queue: QueueName,
  jobId: string,
  frames: readonly PayloadFrame[],
  backlogLimitBytes: number,
): Move[] {
  const ofWorkspace = Map.groupBy(frames, ({ workspaceId }) => workspaceId)
  return [...ofWorkspace].flatMap(([workspaceId, own]) => {
    const ownJobId = `${jobId}-${hash('sha256', workspaceId).slice(0, 16)}`
    return frameMoves(queue, ownJobId, own, backlogLimitBytes)
  })
}

/**
 * Returns the move to the queue `receipts` with which a pool that writes no rows reports the outcome of each request to
 * `ingest_log`. Requests without a receipt are left out.
 */
export function settlementMoves(
  { jobId, kind }: Pick<Settlement, 'jobId' | 'kind'>,
  requests: readonly SettledRequest[],
): Move[] {
  const frames = requests
    .filter(({ frame }) => frame.receipt !== undefined)
    .map(({ frame, refusal, counted }) => {
      const replayedAtMs = replayedFrom(frame)?.replayedAtMs ?? 0
      const settlement: Settlement = {
        kind,
        jobId,
        bytes: frame.body.length,
        replayedAtMs,
        ...(refusal && { refusal }),
        ...(counted && { counted }),
      }
      return withJsonBody(frame, settlement)
    })
  return frameMoves('receipts', `settled-${jobId}`, frames)
}
