import type { Redis } from 'ioredis'
import type { CompletionRecord, Verdict } from '../../schemas/queues/source-maps.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { budgetMember, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import { uploadKeys, VERDICT_LIFETIME_S, VERDICTS_CHANNEL, verdictKey } from '../../shared/queue/upload-keys.ts'

const DELIVER_VERDICT = queueScript('uploads/deliver-verdict')

/** Publishes the verdict to the edge whose client waits. */
export async function deliverVerdict(redis: Redis, attempt: string, verdict: Verdict): Promise<void> {
  const args = [attempt, JSON.stringify(verdict), VERDICT_LIFETIME_S, VERDICTS_CHANNEL]
  await DELIVER_VERDICT.run(redis, [verdictKey(attempt)], args)
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
  await DELIVER_VERDICT.run(redis, keys, verdict.ok ? [...args, JSON.stringify(record)] : args)
}
