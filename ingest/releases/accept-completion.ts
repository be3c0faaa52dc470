import { hash } from 'node:crypto'
import type { Problem } from '../../schemas/http/problems.ts'
import {
  COMPLETION_RECORD_VERSION,
  type CompletionJob,
  type CompletionRecord,
  completionRecordSchema,
} from '../../schemas/queues/source-maps.ts'
import type { CountedRequest } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import {
  budgetMember,
  CHARGE,
  COMPLETIONS_MAX_BYTES,
  OVER_COMPLETION_BUDGET,
  RECORD_BYTES,
  uploadBudgetKeys,
} from '../../shared/queue/upload-budget.ts'
import { uploadKeys } from '../../shared/queue/upload-keys.ts'
import type { ConditionalSink } from '../commit/conditional-sink.ts'

/** A completion with its record, which this request or an earlier one with the same body has written. */
interface RecordedCompletion {
  readonly ok: true
  /**
   * False when the same request was accepted within 24 h, and no other one of the release since. The record is then that of
   * the earlier request.
   */
  readonly isNew: boolean
  readonly record: CompletionRecord
}

/** Accepted for the first time, or the same as one that is in progress (pending) or done (repeated). */
export type CompletionOutcome = 'accepted' | 'pending' | 'repeated'

/**
 * KEYS[8] record, KEYS[9] sequence, KEYS[10] recorded digests, KEYS[11] and [12] budget of the workspace; ARGV[11] attempt,
 * [12] digest, [13] name of the release in the budget. Nothing expires before the worker is done with it. Microseconds of the
 * clock are exact in a double until the year 2255. The last sequence outlives every record that was given one. A request that
 * was accepted before another one gets a new number, because its client wants to go back to it. Returns nothing if the
 * workspace has too many records.
 */
const ACCEPT = `
${CHARGE}
local record = redis.call('GET', KEYS[8])
local last = tonumber(redis.call('GET', KEYS[9]) or '0')
if record and cjson.decode(record).sequence == last then
  refuse()
  return {0, record}
end
local now = redis.call('TIME')
local bytes = ${RECORD_BYTES} + #KEYS[8]
for _, expired in ipairs(redis.call('ZRANGEBYSCORE', KEYS[10], '-inf', now[1], 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[10], expired)
  lift(KEYS[11], ARGV[13], bytes)
end
local added = redis.call('ZSCORE', KEYS[10], ARGV[12]) and 0 or bytes
if not charge(KEYS[11], KEYS[12], ARGV[13], added, ${COMPLETIONS_MAX_BYTES}) then
  refuse()
  return {}
end
redis.call('ZADD', KEYS[10], '+inf', ARGV[12])
redis.call('PERSIST', KEYS[10])
local sequence = string.format('%.0f', math.max(last + 1, now[1] * 1000000 + now[2]))
local repeats = record and string.format(',"repeats":%.0f', cjson.decode(record).sequence) or ''
record = '{"version":${COMPLETION_RECORD_VERSION},"attempt":"' .. ARGV[11] .. '","sequence":' .. sequence .. repeats .. '}'
redis.call('SET', KEYS[9], sequence)
redis.call('SET', KEYS[8], record)
accept()
return {1, record}
`

/**
 * Gives a completion its number in the order of acceptance and enqueues it, unless the last request of the release has the
 * same body, byte for byte. Copies the body before it returns. Does not parse the body, which may have 16 MiB.
 */
export async function acceptCompletion(
  sink: Pick<ConditionalSink, 'store'>,
  release: ReleaseKey,
  { receivedAtMs, body, request }: { receivedAtMs: number; body: Buffer; request: CountedRequest },
): Promise<RecordedCompletion | { readonly ok: false; readonly problem: Problem }> {
  const { workspaceId, surfaceId, slug } = release
  const attributes: CompletionJob = { slug, attempt: newJobId(), digest: hash('sha256', body) }
  const keys = uploadKeys(release)
  const budget = uploadBudgetKeys(workspaceId).completions
  const frame = {
    workspaceId,
    surfaceId,
    receivedAtMs,
    contentType: 'application/json',
    contentEncoding: 'identity',
    attributes: JSON.stringify(attributes),
    body,
  } as const
  const stored = await sink.store(
    frame,
    {
      lua: ACCEPT,
      keys: [keys.completion(attributes.digest), keys.sequence, keys.recorded, budget.sums, budget.ends],
      args: [attributes.attempt, attributes.digest, budgetMember(release)],
    },
    request,
  )
  if (!stored.ok) return stored
  const [isNew, record] = stored.result as [] | [number, string]
  if (record === undefined) return { ok: false, problem: OVER_COMPLETION_BUDGET }
  return { ok: true, isNew: isNew === 1, record: completionRecordSchema.parse(JSON.parse(record)) }
}
