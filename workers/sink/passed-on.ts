import type { IngestLogEntry } from '../../clickhouse/tables/ingest-log-table.ts'
import { type PassedOn, passedOnSchema, RECORDS_VERSION } from '../../schemas/queues/exceptions.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { PIECE_BYTES } from '../../shared/queue/large-values.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { inPieces } from '../queue/moves.ts'

/**
 * A request whose exceptions leave with its batch, as frames for the queue `exceptions`. `entry` is what the log reports of it
 * once they are stored. Without one, the log of the batch has it already.
 */
export interface PassedOnRequest {
  readonly source: Pick<PayloadFrame, 'workspaceId' | 'surfaceId' | 'receivedAtMs' | 'receipt'>
  readonly signal: string
  readonly jobId: string
  /** Position of the request in the payload of that job. */
  readonly index: number
  readonly entry: IngestLogEntry | undefined
  /** Where its records are in those of the batch. */
  readonly start: number
  readonly end: number
}

/** Room that a piece has for what is not records. */
const HEAD_BYTES = 64 * 1024

/**
 * Returns the frames of each piece: at most 1 MiB, unless what the log reports of one request is larger. The same batch has the
 * same pieces each time. A request with more records has several frames, and its outcome is in the last.
 */
export function piecesOf(requests: readonly PassedOnRequest[], records: Buffer): Iterable<readonly PayloadFrame[]> {
  return inPieces(requests.flatMap(request => [...framesOf(request, records)]))
}

function* framesOf({ source, signal, jobId, entry, start, end }: PassedOnRequest, records: Buffer) {
  const { workspaceId, surfaceId, receivedAtMs, receipt } = source
  let from = start
  do {
    const to = endOfPart(records, from, end)
    const isLast = to === end
    const attributes = JSON.stringify({
      ...{ version: RECORDS_VERSION, signal, jobId },
      ...(isLast && entry && { replayedAtMs: entry.replayedAtMs, outcome: outcomeOf(entry) }),
    })
    const frame: PayloadFrame = {
      ...{ workspaceId, surfaceId, receivedAtMs, attributes, body: records.subarray(from, to) },
      ...{ contentType: 'application/octet-stream', contentEncoding: 'identity' },
      receipt: isLast && entry ? receipt : undefined,
      cost: to - from + attributes.length,
    }
    yield frame
    from = to
  } while (from < end)
}

/** Returns the end of the last record that begins at `from` or later and leaves room for the head of a piece. */
function endOfPart(records: Buffer, from: number, end: number): number {
  if (end - from <= PIECE_BYTES - HEAD_BYTES) return end
  let at = from
  for (let next = from; next < end && next - from <= PIECE_BYTES - HEAD_BYTES; ) {
    at = next
    next += 4 + records.readUInt32LE(next)
  }
  return at > from ? at : end
}

/** Leaves out what is empty. */
function outcomeOf(entry: IngestLogEntry): object {
  const { bytes, rejected, deadLettered, discarded, discardedIndexes, refused, rejections } = entry
  const maps = Object.entries({ rejected, deadLettered, discarded }).filter(([, map]) => map.size > 0)
  const lists = Object.entries({ discardedIndexes, refused, rejections }).filter(([, list]) => list.length > 0)
  return {
    bytes,
    ...Object.fromEntries(maps.map(([name, map]) => [name, Object.fromEntries(map)])),
    ...Object.fromEntries(lists),
  }
}

/** Reads the attributes of a frame. Throws a TransientError if a newer version of the workers has written its records. */
export function readPassedOn({ attributes }: PayloadFrame): PassedOn | undefined {
  const read = passedOnSchema.safeParse(parseJson(attributes)).data
  if (read !== undefined && read.version > RECORDS_VERSION)
    throw new TransientError(
      `records of version ${read.version} are newer than ${RECORDS_VERSION}: left to a newer worker`,
    )
  return read
}
