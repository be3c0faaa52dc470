import { completeSourceMaps } from '../../schemas/http/source-maps/operations.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { type BodyHandler, type HeldBody, jsonReply, type Reply, type Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import type { ConditionalSink } from '../commit/conditional-sink.ts'
import { NOT_STORED, withReceipt } from '../commit/frame-sink.ts'
import { acceptCompletion, type CompletionOutcome } from '../releases/accept-completion.ts'
import type { VerdictWait, VerdictWaits } from '../releases/verdict-waits.ts'
import { buildProblem, type ReleaseRouteDeps, refuseBody, withRelease } from './build-route.ts'
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
 * carries it out. The same request gets the same reply for 24 h, without new work (docs/contract.md#source-map-complete).
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

function takeCompletion(deps: Deps, release: ReleaseKey, type: BodyType): BodyHandler {
  return (body, held) =>
    refuseBody(deps.sink.refuse(), type) ??
    withVerdictWait(deps.verdicts, wait => complete(deps, release, { body, held, wait }))
}

async function complete(
  deps: Deps,
  release: ReleaseKey,
  { body, held, wait }: { body: Buffer; held: HeldBody; wait: VerdictWait },
): Promise<Reply> {
  const bytes = body.length
  const request = { receivedAtMs: deps.now(), body }
  const recorded = await deps.sink.store(commit => acceptCompletion(commit, release, request))
  if (recorded === undefined) return buildProblem(NOT_STORED)
  held.release()
  const { isNew, record, receiptId } = recorded
  deps.onCompletion(isNew ? 'accepted' : record.fileCount === undefined ? 'pending' : 'repeated')
  if (isNew) deps.sink.admitted(bytes)
  if (record.fileCount !== undefined) return jsonReply({ ok: true, fileCount: record.fileCount })
  const reply = verdictReply(await wait.verdict(record.attempt))
  return isNew ? withReceipt(reply, receiptId) : reply
}
