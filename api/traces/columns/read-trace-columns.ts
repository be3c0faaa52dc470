import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { readTraceColumns } from '../../../schemas/http/traces/operations.ts'
import { traceIdSchema } from '../../../schemas/http/traces/schemas.ts'
import type { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import { invalid, type Outcome } from '../../http/outcome.ts'
import { type PackedJson, type PackOptions, packedReply, packJson } from '../../http/packed-json.ts'
import { notFound, TRACES } from '../../http/resource.ts'
import { loadColumns, type TraceColumns } from './load-columns.ts'
import { renderColumns } from './render-columns.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for large traces, which bound the memory that they need. */
  readonly largeTraces: Pick<FairSlots, 'run'>
}

/** The most stored rows of a trace that is read without waiting for a slot. Its first rows are read twice if it has more. */
const SMALL_TRACE_ROWS = 16_000
/** The most stored rows that are examined at all. */
const EXAMINED_ROWS = 1_000_000
const PLAIN_BYTES = 24 * 1024 * 1024

/** Returns the route that reads all spans of a trace as columns (docs/contract.md#trace-columns). */
export function readTraceColumnsRoute({ clickhouse, largeTraces, ...deps }: Deps): Route {
  return guardedRoute(deps, readTraceColumns, {
    resource: TRACES,
    reply: packedReply,
    async run({ workspaceId, param, deadline, acceptsGzip }): Promise<Outcome<PackedJson>> {
      const key = { workspaceId, traceId: param('traceId') }
      if (!traceIdSchema.safeParse(key.traceId).success) return notFound(TRACES)
      const options = { acceptsGzip, plainLimitBytes: PLAIN_BYTES, signal: deadline }
      const small = await loadColumns(clickhouse, key, SMALL_TRACE_ROWS, deadline)
      if (small === undefined) return notFound(TRACES)
      if (!small.truncated) return pack(key.traceId, small, options)
      const packLarge = async () => {
        const large = await loadColumns(clickhouse, key, EXAMINED_ROWS, deadline)
        return large === undefined ? notFound(TRACES) : pack(key.traceId, large, options)
      }
      return largeTraces.run(workspaceId, packLarge, deadline)
    },
  })
}

async function pack(traceId: string, columns: TraceColumns, options: PackOptions): Promise<Outcome<PackedJson>> {
  const value = await packJson(renderColumns(traceId, columns), options)
  if (value !== undefined) return { ok: true, value }
  return invalid('accept-encoding must include gzip: the response has more than 24 MiB')
}
