import { MINUTE_MS } from '../../schemas/units.ts'
import { type Slot, slotsUntil, workspaceIdOf, workspaceNumberOf } from './filled-time.ts'
import { fillWithParts, type StoredRows, storedRows, withPatientClient } from './insert-parts.ts'

/** Days with points. */
export const POINT_DAYS = 4
/** Number of metrics, each of which every workspace has. */
const METRICS = 24
const MINUTES_PER_DAY = 1_440
const MINUTE_NANOS = 60_000_000_000n

/** Numbers of the metrics that are counters and histograms, as in bench/payloads/metrics-payload.ts. The others are gauges. */
const COUNTERS = [1, 3, 6]
const HISTOGRAMS = [0, 4]

/** Names of the counters. */
export const COUNTER_NAMES = namesOf(COUNTERS, 'http.server.requests')
/** Names of the histograms. */
export const HISTOGRAM_NAMES = namesOf(HISTOGRAMS, 'http.server.request.duration')
/** Number of all metrics. */
export const METRIC_COUNT = METRICS

function namesOf(numbers: readonly number[], name: string): string[] {
  const all = Array.from({ length: METRICS }, (_, metric) => metric)
  return all.filter(metric => numbers.includes(metric % 8)).map(metric => `${name}.${metric}`)
}

/** Returns the number of hosts, each with a series of every metric. Those with an even number are of the first workspace. */
export function countHosts(points: number): number {
  return Math.max(Math.floor(points / POINT_DAYS / MINUTES_PER_DAY / METRICS), 1)
}

/** Returns the label `server.address` of a host. */
export const addressOf = (host: number) => `shop-${host}.example.com`

/**
 * Fills the emptied table `metric_points` with points of the days that end at `endMs`, as merges would leave them: each part has
 * the points of a few hours. Every series has a point a minute, with the labels of bench/payloads/metrics-payload.ts.
 */
export async function fillPoints(url: string, points: number, endMs: number): Promise<StoredRows> {
  return withPatientClient(url, async client => {
    const slots = slotsUntil(endMs, POINT_DAYS)
    const series = countHosts(points) * METRICS
    await fillWithParts(
      client,
      'metric_points',
      slots.map(slot => insertPoints(slot, series)),
    )
    return storedRows(client, 'metric_points')
  })
}

const KIND = `multiIf(metric % 8 IN (${HISTOGRAMS}), 'histogram', metric % 8 IN (${COUNTERS}), 'sum', 'gauge')`
const BOUNDS = '[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]'
const BUCKETS = 15

const RESOURCE = `
  concat('{"service.name":"', service, '","service.version":"2.14.3","service.instance.id":"0f7c1b1e-8d4f-4f0e-9a57-', service,
    '","deployment.environment.name":"production","host.name":"ip-10-12-33-7.eu-central-1.compute.internal","process.pid":31337,',
    '"process.runtime.name":"nodejs","process.runtime.version":"22.20.0","telemetry.sdk.language":"nodejs",',
    '"telemetry.sdk.version":"2.1.0"}')`

/** Returns an INSERT of the points of all series, each minute. Sums and histograms are cumulative and grow each minute. */
function insertPoints({ number, fromMs, lengthMs }: Slot, series: number): string {
  const minutes = lengthMs / MINUTE_MS
  const startNanos = BigInt(fromMs) * 1_000_000n - BigInt(number * lengthMs) * 1_000_000n
  return `
    INSERT INTO metric_points (workspace_id, surface_id, received_at, service_name, service_version, resource,
      resource_schema_url, scope_name, scope_version, metric_name, description, unit, type, aggregation_temporality, is_monotonic,
      series_id, start_time_unix_nano, time_unix_nano, attributes, attribute_types, value_type, as_int, as_double, count, sum,
      min, max, explicit_bounds, bucket_counts)
    SELECT workspace, concat('srf_', workspace), fromUnixTimestamp64Milli(intDiv(nanos, 1000000) + 200, 'UTC'), service,
      '2.14.3', ${RESOURCE}, 'https://opentelemetry.io/schemas/1.37.0', '@opentelemetry/instrumentation-http', '0.205.0',
      concat(name, '.', toString(metric)), concat('What the service has counted as ', name, '.'),
      multiIf(kind = 'histogram', 's', kind = 'sum', '{request}', 'By'), kind, if(kind = 'gauge', 'unspecified', 'cumulative'),
      kind = 'sum', sipHash64(series), ${startNanos} - ${MINUTE_NANOS}, toUInt64(nanos),
      map('http.request.method', ['GET', 'POST', 'GET', 'PUT'][host % 4 + 1],
        'http.route', ['/api/orders/:id', '/api/carts/:id/items', '/api/products', '/api/checkout', '/healthz'][host % 5 + 1],
        'http.response.status_code', if(host % 7 = 0, '500', '200'), 'server.address', concat('shop-', toString(host), '.example.com')),
      [1, 1, 3, 1], multiIf(kind = 'histogram', 'none', kind = 'sum', 'int', 'double'),
      if(kind = 'sum', toInt64(minute * (30 + host % 13) + seed % 30), 0), if(kind = 'gauge', seed % 10000 / 100, 0),
      arraySum(buckets), if(kind = 'histogram', arraySum(buckets) * 0.08, NULL), if(kind = 'histogram', 0.0017, NULL),
      if(kind = 'histogram', 4.81, NULL), if(kind = 'histogram', ${BOUNDS}, []), buckets
    FROM (
      SELECT number % ${series} AS series, toUInt64(${number * minutes} + intDiv(number, ${series}) + 1) AS minute,
        series % ${METRICS} AS metric, intDiv(series, ${METRICS}) AS host, sipHash64(series, minute) AS seed,
        toInt64(${startNanos} + (minute - 1) * ${MINUTE_NANOS} + sipHash64(series) % ${MINUTE_NANOS}) AS nanos,
        ${workspaceIdOf(workspaceNumberOf('toUInt64(host + 1)'))} AS workspace, concat('shop-', toString(intDiv(host, 2) % 8)) AS service,
        ${KIND} AS kind,
        multiIf(kind = 'histogram', 'http.server.request.duration', kind = 'sum', 'http.server.requests', 'process.memory.usage')
          AS name,
        if(kind = 'histogram', arrayMap(bucket -> toUInt64(minute * (bucket * (host + 3) % 17)), range(${BUCKETS})), []) AS buckets
      FROM numbers(${series * minutes}))`
}
