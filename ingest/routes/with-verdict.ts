import type { Verdict } from '../../schemas/queues/source-maps.ts'
import type { Reply } from '../../shared/http/route.ts'
import type { VerdictWait } from '../releases/verdict-waits.ts'
import type { IngestDeps } from '../routes.ts'
import { buildProblem, unavailable } from './build-route.ts'
import { jsonReply } from './surface-route.ts'

/** Of a request that was accepted and not judged in time. */
const RETRY_AFTER_SECONDS = 5

/**
 * Has `work` run with a place to wait for a worker's verdict in; answers INGEST_BACKPRESSURE when all are taken. What
 * `work` does with the body it must have done when it returns its promise.
 */
export function withVerdictWait(deps: IngestDeps, work: (wait: VerdictWait) => Promise<Reply>): Reply | Promise<Reply> {
  const wait = deps.builds.verdicts.begin()
  if (wait === undefined) {
    const message = 'as many requests as may are waiting for their results'
    return buildProblem({ code: 'INGEST_BACKPRESSURE', message, retryAfterSeconds: 1 })
  }
  return work(wait).finally(() => wait.end())
}

/** The answer to a request whose verdict a worker has left, or has not. */
export function verdictReply(verdict: Verdict | undefined): Reply {
  if (verdict === undefined) {
    return buildProblem(unavailable('the request is still being worked on; send it again', RETRY_AFTER_SECONDS))
  }
  if (verdict.ok) return jsonReply(verdict.value)
  const { code, message } = verdict
  return buildProblem({ code, message, ...(code === 'INGEST_INFRA_UNAVAILABLE' && { retryAfterSeconds: 1 }) })
}
