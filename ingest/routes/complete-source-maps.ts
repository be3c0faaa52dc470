import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import type { BodyHandler, HeldBody, Reply, Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { NOT_STORED, withReceipt } from '../commit/frame-sink.ts'
import { type AcceptedCompletion, acceptCompletion } from '../releases/accept-completion.ts'
import type { VerdictWait } from '../releases/verdict-waits.ts'
import type { IngestDeps } from '../routes.ts'
import { buildProblem, refuseBody, withRelease } from './build-route.ts'
import { jsonReply } from './surface-route.ts'
import { verdictReply, withVerdictWait } from './with-verdict.ts'

const BODY_LIMIT_BYTES = 16 * 1024 * 1024

/**
 * POST /v3/releases/{releaseSlug}/source-maps/complete (spec 4.7): the request gets its place in the order of acceptance,
 * and the answer that a worker has for it. Sent again within 24 h it has the same answer, without new work.
 */
export function completeSourceMapsRoute(deps: IngestDeps): Route {
  return {
    method: 'POST',
    path: '/v3/releases/:releaseSlug/source-maps/complete',
    bodyLimitBytes: BODY_LIMIT_BYTES,
    overLimit: { code: 'REQUEST_INVALID', status: 413, message: 'the body is over the limit of 16 MiB' },
    renderProblem: buildProblem,
    accept(head) {
      const type = bodyTypeOf(head)
      return withRelease(deps, head, 'refused', place => takeCompletion(deps, place, type))
    },
  }
}

function takeCompletion(deps: IngestDeps, place: ReleaseKey, type: BodyType): BodyHandler {
  return (body, held) => {
    const refused = refuseBody(deps, 'completions', type)
    if (refused) return refused
    return withVerdictWait(deps, wait => complete(deps, place, { body, held, wait }))
  }
}

async function complete(
  deps: IngestDeps,
  place: ReleaseKey,
  { body, held, wait }: { body: Buffer; held: HeldBody; wait: VerdictWait },
): Promise<Reply> {
  const bytes = body.length
  let accepted: AcceptedCompletion
  try {
    accepted = await acceptCompletion(deps.builds.completions, place, { receivedAtMs: deps.now(), body })
  } catch (error) {
    deps.logger.debug({ error: describeError(error) }, 'a completion could not be enqueued')
    return buildProblem(NOT_STORED)
  }
  held.release()
  const { isNew, record, receiptId } = accepted
  deps.builds.onCompletion(isNew ? 'accepted' : record.fileCount === undefined ? 'pending' : 'repeated')
  if (isNew) deps.admission.admitted('completions', bytes)
  if (record.fileCount !== undefined) return jsonReply({ ok: true, fileCount: record.fileCount })
  const reply = verdictReply(await wait.verdict(record.attempt))
  return isNew ? withReceipt(reply, receiptId) : reply
}
