import { COMPLETION_BYTES } from '../../schemas/http/limits.ts'
import { completeSourceMaps } from '../../schemas/http/source-maps/operations.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { type Decision, type HeldBody, jsonReply, type Reply, type Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import type { AdmittedRequest, Sink } from '../commit/sink.ts'
import { acceptCompletion, type CompletionOutcome } from '../releases/accept-completion.ts'
import type { VerdictWait, VerdictWaits } from '../releases/verdict-waits.ts'
import { buildProblem, type ReleaseRouteDeps, refuseBody, withRelease } from './build-route.ts'
import { verdictReply, withVerdictWait } from './with-verdict.ts'

interface Deps extends ReleaseRouteDeps {
  /** The sink of the queue `completions`. */
  readonly sink: Sink
  readonly verdicts: Pick<VerdictWaits, 'begin'>
  readonly onCompletion: (outcome: CompletionOutcome) => void
  readonly now: () => number
}

/**
 * Gives the completion of a release its number in the order of acceptance, and replies with the verdict of the worker that
 * carries it out. The same request gets the same reply for 24 h, without new work, until another one follows
 * (docs/api/releases.md#source-map-complete).
 */
export function completeSourceMapsRoute(deps: Deps): Route {
  return operationRoute(completeSourceMaps, {
    renderProblem: buildProblem,
    accept(head, body) {
      const type = bodyTypeOf(head)
      return withRelease(deps, head, body, 'refused', release => takeCompletion(deps, release, type))
    },
  })
}

function takeCompletion(deps: Deps, release: ReleaseKey, type: BodyType): Decision {
  const admitted = deps.sink.admit(release, type.contentLength, COMPLETION_BYTES)
  if ('code' in admitted) return buildProblem(admitted)
  return (body, request) =>
    refuseBody(undefined, type) ??
    withVerdictWait(deps.verdicts, release, wait => complete(deps, release, { admitted, body, request, wait }))
}

/** A completion that was admitted, and the slot in which its client waits. */
interface Completion {
  readonly admitted: AdmittedRequest
  readonly body: Buffer
  readonly request: HeldBody
  readonly wait: VerdictWait
}

async function complete(
  deps: Deps,
  release: ReleaseKey,
  { admitted, body, request, wait }: Completion,
): Promise<Reply> {
  const recorded = await acceptCompletion(admitted, release, { receivedAtMs: deps.now(), body, request })
  if (!recorded.ok) return buildProblem(recorded.problem)
  request.release()
  const { isNew, record } = recorded
  deps.onCompletion(isNew ? 'accepted' : record.fileCount === undefined ? 'pending' : 'repeated')
  if (record.fileCount !== undefined) return jsonReply({ ok: true, fileCount: record.fileCount })
  return verdictReply(await wait.verdict(record.attempt))
}
