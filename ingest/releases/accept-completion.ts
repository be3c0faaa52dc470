import { hash } from 'node:crypto'
import type { Problem } from '../../schemas/http/problems.ts'
import {
  COMPLETION_RECORD_VERSION,
  type CompletionJob,
  type CompletionRecord,
  completionRecordSchema,
} from '../../schemas/queues/source-maps.ts'
import type { AnswerableRequest } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { newJobId } from '../../shared/queue/queue.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { budgetMember, OVER_COMPLETION_BUDGET, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import { uploadKeys } from '../../shared/queue/upload-keys.ts'
import type { AdmittedRequest } from '../commit/sink.ts'

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

const ACCEPT_COMPLETION = queueScript('uploads/accept-completion')

/**
 * Gives a completion its number in the order of acceptance and enqueues it, unless the last request of the release has the
 * same body, byte for byte. Copies the body before it returns. Does not parse the body, which may have 16 MiB.
 */
export async function acceptCompletion(
  admitted: Pick<AdmittedRequest, 'store'>,
  release: ReleaseKey,
  { receivedAtMs, body, request }: { receivedAtMs: number; body: Buffer; request: AnswerableRequest },
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
  const stored = await admitted.store(frame, request, {
    script: ACCEPT_COMPLETION,
    keys: [keys.completion(attributes.digest), keys.sequence, keys.recorded, budget.sums, budget.ends],
    args: [attributes.attempt, attributes.digest, budgetMember(release), COMPLETION_RECORD_VERSION],
  })
  if (!stored.ok) return stored
  const [isNew, record] = stored.result as [] | [number, string]
  if (record === undefined) return { ok: false, problem: OVER_COMPLETION_BUDGET }
  return { ok: true, isNew: isNew === 1, record: completionRecordSchema.parse(JSON.parse(record)) }
}
