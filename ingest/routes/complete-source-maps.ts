import { COMPLETION_BYTES } from '../../schemas/http/limits.ts'
import { completeSourceMaps } from '../../schemas/http/source-maps/operations.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { type Decision, type HeldBody, jsonReply, type Reply, type Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import type { ConditionalSink } from '../commit/conditional-sink.ts'
import { acceptCompletion, type CompletionOutcome } from '../releases/accept-completion.ts'
import type { VerdictWait, VerdictWaits } from '../releases/verdict-waits.ts'
import { buildProblem, type ReleaseRouteDeps, refuseBody, withRelease } from './build-route.ts'
import { refuseHead } from './refuse-head.ts'
import { verdictReply, withVerdictWait } from './with-verdict.ts'

interface Deps extends ReleaseRouteDeps {
  /** The sink of the queue `completions`. */
  readonly sink: ConditionalSink
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
  const backpressure = refuseHead(deps.sink, release, type.contentLength, COMPLETION_BYTES)
  if (backpressure) return buildProblem(backpressure)
  return (body, held) =>
    refuseBody(undefined, type) ??
    withVerdictWait(deps.verdicts, release, wait => complete(deps, release, { body, held, wait }))
}

async function complete(
  deps: Deps,
  release: ReleaseKey,
  { body, held, wait }: { body: Buffer; held: HeldBody; wait: VerdictWait },
): Promise<Reply> {
  const completion = { receivedAtMs: deps.now(), body, request: held }
  const recorded = await acceptCompletion(deps.sink, release, completion)
  if (!recorded.ok) return buildProblem(recorded.problem)
  held.release()
  const { isNew, record } = recorded
  deps.onCompletion(isNew ? 'accepted' : record.fileCount === undefined ? 'pending' : 'repeated')
  if (record.fileCount !== undefined) return jsonReply({ ok: true, fileCount: record.fileCount })
  return verdictReply(await wait.verdict(record.attempt))
}
