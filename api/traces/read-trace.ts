import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectFindingHasTrace } from '../../clickhouse/queries/findings/select-finding-has-trace.ts'
import { findingIdSchema } from '../../schemas/http/findings/schemas.ts'
import { readTrace } from '../../schemas/http/traces/operations.ts'
import { readTraceQuerySchema, traceIdSchema } from '../../schemas/http/traces/schemas.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { type Outcome, okJson } from '../http/outcome.ts'
import { FINDINGS, notFound } from '../http/resource.ts'
import { loadTrace } from './load-trace.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for large traces, which bound the memory that they need. */
  readonly largeTraces: Pick<FairSlots, 'run'>
}

/** Returns the route that reads every retained span of one trace of a finding (docs/contract.md#trace). */
export function readTraceRoute(deps: Deps): Route {
  return guardedRoute(deps, readTrace, {
    resource: FINDINGS,
    query: readTraceQuerySchema,
    reply: okJson,
    async run({ workspaceId, param, query: { limit }, deadline }) {
      const [findingId, traceId] = [param('findingId'), param('traceId')]
      const isWellFormed = findingIdSchema.safeParse(findingId).success && traceIdSchema.safeParse(traceId).success
      if (!isWellFormed) return notFound(FINDINGS)
      return readTraceOfFinding(deps, { workspaceId, findingId, traceId }, limit, deadline)
    },
  })
}

interface FindingTraceKey {
  readonly workspaceId: string
  readonly findingId: string
  readonly traceId: string
}

/**
 * Loads the trace and checks at the same time that it belongs to the finding, because almost every requested trace does. The
 * loading is aborted if it does not.
 */
async function readTraceOfFinding(
  deps: Deps,
  key: FindingTraceKey,
  limit: number,
  deadline: AbortSignal,
): Promise<Outcome<Buffer>> {
  const { workspaceId, traceId } = key
  const abandoned = new AbortController()
  const loading = loadTrace(deps, { workspaceId, traceId }, limit, AbortSignal.any([deadline, abandoned.signal]))
  // If the trace is abandoned, nothing awaits `loading`, and its failure must not count as unhandled.
  loading.catch(() => {})
  try {
    const isOfFinding = await selectFindingHasTrace(deps.clickhouse, key, deadline)
    const trace = isOfFinding ? await loading : undefined
    return trace === undefined ? notFound(FINDINGS) : { ok: true, value: trace }
  } finally {
    // A given reason avoids the error with a stack that abort() would create, which took 0.1 ms of each read.
    abandoned.abort('the trace is not needed')
  }
}
