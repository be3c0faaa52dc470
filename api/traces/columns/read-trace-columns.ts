import { readTraceColumns } from '../../../schemas/http/traces/operations.ts'
import { traceIdSchema } from '../../../schemas/http/traces/schemas.ts'
import { MIB } from '../../../schemas/units.ts'
import type { Route } from '../../../shared/http/route.ts'
import { type GuardedRouteDeps, guardedRoute } from '../../http/guarded-route.ts'
import { invalid, type Outcome } from '../../http/outcome.ts'
import { type PackedJson, type PackOptions, packedReply, packJson } from '../../http/packed-json.ts'
import { notFound, TRACES } from '../../http/resource.ts'
import { assessCompleteness } from '../completeness/assess-completeness.ts'
import { beginEvidence, type EvidenceDeps } from '../completeness/load-evidence.ts'
import { renderColumns } from './render-columns.ts'
import { type ColumnsDeps, useColumns } from './use-columns.ts'

type Deps = GuardedRouteDeps & EvidenceDeps & ColumnsDeps

const PLAIN_BYTES = 24 * MIB

/** Returns the route that reads all spans of a trace as columns (docs/api/traces.md#trace-columns). */
export function readTraceColumnsRoute(deps: Deps): Route {
  return guardedRoute(deps, readTraceColumns, {
    resource: TRACES,
    reply: packedReply,
    async run({ workspaceId, param, deadline, acceptsGzip }): Promise<Outcome<PackedJson>> {
      const key = { workspaceId, traceId: param('traceId') }
      if (!traceIdSchema.safeParse(key.traceId).success) return notFound(TRACES)
      const options = { acceptsGzip, plainLimitBytes: PLAIN_BYTES, signal: deadline }
      const loadEvidence = await beginEvidence(deps, key, deadline)
      const outcome = await useColumns(deps, key, deadline, async columns => {
        const assessed = assessCompleteness(columns, await loadEvidence(columns.arrivals))
        return pack(renderColumns(key.traceId, columns, assessed), options)
      })
      return outcome ?? notFound(TRACES)
    },
  })
}

async function pack(json: Iterable<Uint8Array>, options: PackOptions): Promise<Outcome<PackedJson>> {
  const value = await packJson(json, options)
  if (value !== undefined) return { ok: true, value }
  return invalid('accept-encoding must include gzip: the response has more than 24 MiB')
}
