import type { ProblemCode } from '../../schemas/http/problems.ts'
import type { Verdict } from '../../schemas/queues/source-maps.ts'
import { jsonReply, type Reply } from '../../shared/http/route.ts'
import type { SurfaceCaller } from '../auth/authenticate-surface.ts'
import type { VerdictWait, VerdictWaits } from '../releases/verdict-waits.ts'
import { buildProblem, unavailable } from './build-route.ts'

/** The delay for a client whose request was accepted and not judged in time. */
const RETRY_AFTER_SECONDS = 5

/** The delays for clients whose requests a worker has refused for a time. */
const RETRY_AFTER_BY_CODE: Partial<Record<ProblemCode, number>> = {
  INGEST_BACKPRESSURE: 60,
  INGEST_INFRA_UNAVAILABLE: 1,
}

/**
 * Runs `work` with a reserved slot to wait for a worker's verdict. Returns INGEST_BACKPRESSURE when the surface has its
 * share of the slots. The body is valid only until `work` returns its promise.
 */
export function withVerdictWait(
  verdicts: Pick<VerdictWaits, 'begin'>,
  surface: SurfaceCaller,
  work: (wait: VerdictWait) => Promise<Reply>,
): Reply | Promise<Reply> {
  const wait = verdicts.begin(surface)
  if (wait === undefined) {
    const message = 'too many uploads and completions are in progress; retry after the delay'
    return buildProblem({ code: 'INGEST_BACKPRESSURE', message, retryAfterSeconds: 1 })
  }
  return work(wait).finally(() => wait.end())
}

/** Returns the reply with a worker's verdict. Without a verdict, the client shall retry. */
export function verdictReply(verdict: Verdict | undefined): Reply {
  if (verdict === undefined) {
    return buildProblem(unavailable('the request is still in progress; send it again', RETRY_AFTER_SECONDS))
  }
  if (verdict.ok) return jsonReply(verdict.value)
  const { code, message } = verdict
  const retryAfterSeconds = RETRY_AFTER_BY_CODE[code]
  return buildProblem({ code, message, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) })
}
