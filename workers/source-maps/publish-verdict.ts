import type { Redis } from 'ioredis'
import type { CompletionRecord, Verdict } from '../../schemas/queues/source-maps.ts'
import { UPLOAD_LIFETIME_S, VERDICT_LIFETIME_S, VERDICTS_CHANNEL, verdictKey } from '../../shared/queue/upload-keys.ts'

/**
 * KEYS verdict, record of the completion (or none); ARGV attempt, verdict, its lifetime, channel, then the new record and
 * its lifetime, or nothing to delete the record. The record of another attempt is left alone.
 */
const DELIVER_VERDICT = `
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
if KEYS[2] then
  local record = redis.call('GET', KEYS[2])
  if record and cjson.decode(record).attempt == ARGV[1] then
    if ARGV[5] then redis.call('SET', KEYS[2], ARGV[5], 'EX', ARGV[6]) else redis.call('DEL', KEYS[2]) end
  end
end
redis.call('PUBLISH', ARGV[4], ARGV[1])
`

/** Publishes the verdict to the edge whose client waits. */
export async function deliverVerdict(redis: Redis, attempt: string, verdict: Verdict): Promise<void> {
  const args = [attempt, JSON.stringify(verdict), VERDICT_LIFETIME_S, VERDICTS_CHANNEL]
  await redis.eval(DELIVER_VERDICT, 1, verdictKey(attempt), ...args)
}

/**
 * Publishes the verdict of a completion and updates its record in the same step. The record of a successful completion
 * answers its repetitions for a day. The record of a refused completion is deleted, so that a repetition is judged again.
 */
export async function deliverCompletion(
  redis: Redis,
  recordKey: string,
  record: CompletionRecord,
  verdict: Verdict,
): Promise<void> {
  const { attempt } = record
  const args = [attempt, JSON.stringify(verdict), VERDICT_LIFETIME_S, VERDICTS_CHANNEL]
  const kept = verdict.ok ? [JSON.stringify(record), UPLOAD_LIFETIME_S] : []
  await redis.eval(DELIVER_VERDICT, 2, verdictKey(attempt), recordKey, ...args, ...kept)
}
