import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { TracesPage } from '../../../schemas/http/traces/search.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { TRACEGEN_DAYS, TRACEGEN_SERVICES, TRACEGEN_SPANS, TRACEGEN_WORKSPACE } from '../../data/fill-tracegen.ts'
import type { ComparedRead } from '../../measure/reads/compare-reads.ts'
import { newestTraces, totalsOfTraces, tracesWithAttribute } from '../../measure/reads/trace-queries.ts'

/** Different values of one search, so that none is remembered. */
const VALUES = 60
/** Traces of a list, as Jaeger's page requests them. */
const PAGE = 20
const LARGE_PAGE = 100

/** What a stored span has that is searched for. */
interface Sample {
  readonly traceId: string
  readonly service: string
  readonly name: string
  readonly key: string
  readonly value: string
}

/** Returns the reads of Jaeger's benchmark, in its order. */
export async function tracegenReads(client: ClickHouseClient, endMs: number): Promise<ComparedRead[]> {
  const samples = await pickSamples(client)
  const at = (i: number) => samples[i % samples.length] as Sample
  const time = { from: new Date(endMs - TRACEGEN_DAYS * DAY_MS).toISOString(), to: new Date(endMs).toISOString() }
  const sinceNano = BigInt(endMs - DAY_MS) * 1_000_000n
  const newest = (condition: string, limit = PAGE) =>
    newestTraces(TRACEGEN_WORKSPACE, limit, `last_start_unix_nano >= ${sinceNano} AND ${condition}`)
  const search = (
    name: string,
    query: (i: number) => Record<string, string>,
    alone: (i: number) => string,
    atLeast = PAGE,
  ): ComparedRead => ({
    name: `search by ${name}`,
    atLeast,
    path: i => `/v3/traces?${new URLSearchParams(query(i))}`,
    count: body => (JSON.parse(body) as TracesPage).traces.length,
    alone: i => totalsOfTraces(TRACEGEN_WORKSPACE, alone(i)),
  })
  const attribute = (i: number) => `${at(i).key}=${at(i).value}`
  return [
    jaegerList('services', TRACEGEN_SERVICES, () => '/jaeger/api/services'),
    jaegerList('operations', TRACEGEN_SPANS, i => `/jaeger/api/services/${at(i).service}/operations`),
    {
      name: 'trace by id',
      atLeast: TRACEGEN_SPANS,
      path: i => `/jaeger/api/traces/${at(i).traceId}`,
      count: body => (JSON.parse(body) as JaegerTraces).data.flatMap(({ spans }) => spans).length,
      alone: i => spansOfTrace(at(i).traceId),
    },
    {
      name: 'trace by id, as columns',
      atLeast: TRACEGEN_SPANS,
      path: i => `/v3/traces/${at(i).traceId}`,
      count: body => (JSON.parse(body) as { spanCount: number }).spanCount,
      alone: i => spansOfTrace(at(i).traceId),
    },
    search(
      'service',
      i => ({ service: at(i).service }),
      i => newest(`service_name = '${at(i).service}'`),
    ),
    search(
      'service, a page of 100',
      i => ({ service: at(i).service, limit: String(LARGE_PAGE) }),
      i => newest(`service_name = '${at(i).service}'`, LARGE_PAGE),
      LARGE_PAGE,
    ),
    search(
      'operation',
      i => ({ name: at(i).name }),
      () => newest('true'),
    ),
    search(
      'duration',
      () => ({ minDurationMs: '0' }),
      () => newest('longest_nanos >= 0'),
    ),
    search(
      'time',
      () => time,
      () => newest('true'),
    ),
    search(
      'attribute',
      i => ({ attribute: attribute(i), ...time }),
      i => tracesWithAttribute(TRACEGEN_WORKSPACE, PAGE, at(i).key, at(i).value),
      1,
    ),
    search(
      'all filters',
      i => ({ service: at(i).service, name: at(i).name, minDurationMs: '0', attribute: attribute(i), ...time }),
      i =>
        tracesWithAttribute(
          TRACEGEN_WORKSPACE,
          PAGE,
          at(i).key,
          at(i).value,
          `service_name = '${at(i).service}' AND name = '${at(i).name}'`,
        ),
      1,
    ),
  ]
}

/** Response of the interface of Jaeger with traces. */
interface JaegerTraces {
  readonly data: readonly { readonly spans: readonly unknown[] }[]
}

function jaegerList(name: string, atLeast: number, path: (i: number) => string): ComparedRead {
  return { name, atLeast, path, count: body => (JSON.parse(body) as { data: unknown[] }).data.length }
}

const spansOfTrace = (traceId: string) =>
  `SELECT * FROM spans WHERE workspace_id = '${TRACEGEN_WORKSPACE}' AND trace_id = unhex('${traceId}')`

/** Picks children of traces pseudo-randomly. */
async function pickSamples(client: ClickHouseClient): Promise<Sample[]> {
  const result = await client.query({
    query: `
      SELECT lower(hex(trace_id)) AS traceId, toString(service_name) AS service, name,
        mapKeys(attributes)[cityHash64(span_id) % 11 + 1] AS key, mapValues(attributes)[cityHash64(span_id) % 11 + 1] AS value
      FROM spans WHERE workspace_id = '${TRACEGEN_WORKSPACE}' AND kind = 3 AND cityHash64(span_id, 1) % 1000 = 0
      ORDER BY cityHash64(span_id, 2) LIMIT ${VALUES}`,
    format: 'JSONEachRow',
  })
  return result.json<Sample>()
}
