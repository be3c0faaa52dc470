import { selectFindingHasTrace } from '../../clickhouse/queries/findings/select-finding-has-trace.ts'
import { findingIdSchema } from '../../schemas/http/findings/schemas.ts'
import { readTraceQuerySchema, type Trace, traceIdSchema } from '../../schemas/http/traces/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { FINDINGS_GUARD, findingNotFound, guardedRead } from '../http/guarded-read.ts'
import { parseQuery } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { loadTrace } from './load-trace.ts'

/** 4.9: every retained span of one trace of a finding. */
export function readTraceRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/findings/:findingId/traces/:traceId',
    bodyLimitBytes: 0,
    accept(head) {
      const asked = { findingId: head.param('findingId'), traceId: head.param('traceId') }
      const limit = head.query('limit')
      return guardedRead(deps, head.header('authorization'), FINDINGS_GUARD, async (workspaceId, signal) => {
        const query = parseQuery(readTraceQuerySchema, { limit })
        if (!query.ok) return query
        return readTrace(deps, { workspaceId, ...asked }, query.value.limit, signal)
      })
    },
  }
}

interface AskedTrace {
  readonly workspaceId: string
  readonly findingId: string
  readonly traceId: string
}

/** The trace is read while its membership is looked up: almost every trace that is asked for is one of the finding's. */
async function readTrace(
  deps: ApiDeps,
  { workspaceId, findingId, traceId }: AskedTrace,
  limit: number,
  deadline: AbortSignal,
): Promise<Outcome<Trace>> {
  const wellFormed = findingIdSchema.safeParse(findingId).success && traceIdSchema.safeParse(traceId).success
  if (!wellFormed) return findingNotFound
  const strangers = new AbortController()
  const signal = AbortSignal.any([deadline, strangers.signal])
  const loading = loadTrace(deps, { workspaceId, traceId }, limit, signal)
  // Its failure counts only when it is waited for.
  loading.catch(() => {})
  try {
    const isMember = await selectFindingHasTrace(deps.clickhouse, { workspaceId, findingId, traceId }, deadline)
    const trace = isMember ? await loading : undefined
    return trace === undefined ? findingNotFound : { ok: true, value: trace }
  } finally {
    // With a reason of its own: the one that abort() makes, with its stack, took 0.1 ms of each read.
    strangers.abort('nobody waits for the trace')
  }
}
