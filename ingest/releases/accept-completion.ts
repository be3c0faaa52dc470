import { hash } from 'node:crypto'
import { type CompletionJob, type CompletionRecord, completionRecordSchema } from '../../schemas/queues/source-maps.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { UPLOAD_LIFETIME_S, uploadKeys } from '../../shared/queue/upload-keys.ts'
import type { ConditionalCommit } from '../commit/conditional-commit.ts'

/** A completion with its record, which this request or an earlier one with the same body has written. */
export interface RecordedCompletion {
  /** False when the same request was accepted within 24 h. The record is then that of the earlier request. */
  readonly isNew: boolean
  readonly record: CompletionRecord
  /** The id of this request's receipt. It is valid only if the request is new. */
  readonly receiptId: string
}

/** Accepted for the first time, or the same as one that is in progress (pending) or done (repeated). */
export type CompletionOutcome = 'accepted' | 'pending' | 'repeated'

/**
 * KEYS[3] record, KEYS[4] sequence; ARGV[2] attempt, [3] lifetime. Microseconds of the clock are exact in a double until
 * the year 2255. The last sequence outlives every record that was given one.
 */
const ACCEPT = `
local record = redis.call('GET', KEYS[3])
if record then
  refuse()
  return {0, record}
end
local now = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[4]) or '0')
local sequence = string.format('%.0f', math.max(last + 1, now[1] * 1000000 + now[2]))
record = '{"attempt":"' .. ARGV[2] .. '","sequence":' .. sequence .. '}'
redis.call('SET', KEYS[4], sequence, 'EX', 2 * ARGV[3])
redis.call('SET', KEYS[3], record, 'EX', ARGV[3])
accept()
return {1, record}
`

/**
 * Gives a completion its number in the order of acceptance and enqueues it, unless a request with the same body, byte for
 * byte, has a number already. Copies the body before it returns. Does not parse the body, which may have 16 MiB.
 */
export async function acceptCompletion(
  commit: ConditionalCommit,
  release: ReleaseKey,
  { receivedAtMs, body }: { receivedAtMs: number; body: Buffer },
): Promise<RecordedCompletion> {
  const { workspaceId, surfaceId, slug } = release
  const attributes: CompletionJob = { slug, attempt: newJobId(), digest: hash('sha256', body) }
  const keys = uploadKeys(release)
  const frame = {
    workspaceId,
    surfaceId,
    receivedAtMs,
    contentType: 'application/json',
    contentEncoding: 'identity',
    attributes: JSON.stringify(attributes),
    body,
  } as const
  const { result, receiptId } = await commit.commit(frame, {
    lua: ACCEPT,
    keys: [keys.completion(attributes.digest), keys.sequence],
    args: [attributes.attempt, UPLOAD_LIFETIME_S],
  })
  const [isNew, record] = result as [number, string]
  return { isNew: isNew === 1, record: completionRecordSchema.parse(JSON.parse(record)), receiptId }
}
