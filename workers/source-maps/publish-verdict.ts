import type { Redis } from 'ioredis'
import type { CompletionRecord, Verdict } from '../../schemas/queues/source-maps.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { budgetMember, LIFT, RECORD_BYTES, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import {
  UPLOAD_LIFETIME_S,
  uploadKeys,
  VERDICT_LIFETIME_S,
  VERDICTS_CHANNEL,
  verdictKey,
} from '../../shared/queue/upload-keys.ts'

/**
 * KEYS verdict, then nothing, or record of the completion, recorded digests, bytes of the records and last sequence; ARGV
 * attempt, verdict, its lifetime, channel, then digest, name of the release in the budget, and the new record with its lifetime,
 * or no record to delete it. The record of another attempt is left alone. While another completion of the release waits,
 * nothing else expires. The last sequence outlives every record that was given one.
 */
const DELIVER_VERDICT = `
${LIFT}
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
if KEYS[2] then
  local record = redis.call('GET', KEYS[2])
  if record and cjson.decode(record).attempt == ARGV[1] then
    if ARGV[7] then
      redis.call('SET', KEYS[2], ARGV[7], 'EX', ARGV[8])
      redis.call('ZADD', KEYS[3], 'XX', redis.call('TIME')[1] + ARGV[8], ARGV[5])
    else
      redis.call('DEL', KEYS[2])
      if redis.call('ZREM', KEYS[3], ARGV[5]) == 1 then lift(KEYS[4], ARGV[6], ${RECORD_BYTES} + #KEYS[2]) end
    end
    if redis.call('ZCOUNT', KEYS[3], '+inf', '+inf') == 0 then
      redis.call('EXPIRE', KEYS[3], ${UPLOAD_LIFETIME_S})
      redis.call('EXPIRE', KEYS[5], ${2 * UPLOAD_LIFETIME_S})
    end
  end
end
redis.call('PUBLISH', ARGV[4], ARGV[1])
`

/** Publishes the verdict to the edge whose client waits. */
export async function deliverVerdict(redis: Redis, attempt: string, verdict: Verdict): Promise<void> {
  const args = [attempt, JSON.stringify(verdict), VERDICT_LIFETIME_S, VERDICTS_CHANNEL]
  await redis.eval(DELIVER_VERDICT, 1, verdictKey(attempt), ...args)
}

/** An accepted completion whose record is updated. */
interface RecordedCompletion {
  readonly release: ReleaseKey
  /** SHA-256 of its body in hex. */
  readonly digest: string
  readonly record: CompletionRecord
}

/**
 * Publishes the verdict of a completion and updates its record in the same step. The record of a successful completion
 * answers its repetitions for another 24 h. The record of a refused completion is deleted, so that a
 * repetition is judged again.
 */
export async function deliverCompletion(
  redis: Redis,
  { release, digest, record }: RecordedCompletion,
  verdict: Verdict,
): Promise<void> {
  const { attempt } = record
  const { completion, recorded, sequence } = uploadKeys(release)
  const { sums } = uploadBudgetKeys(release.workspaceId).completions
  const keys = [verdictKey(attempt), completion(digest), recorded, sums, sequence]
  const args = [attempt, JSON.stringify(verdict), VERDICT_LIFETIME_S, VERDICTS_CHANNEL, digest, budgetMember(release)]
  await redis.eval(
    DELIVER_VERDICT,
    keys.length,
    ...keys,
    ...args,
    ...(verdict.ok ? [JSON.stringify(record), UPLOAD_LIFETIME_S] : []),
  )
}
