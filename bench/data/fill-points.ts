import { MINUTE_MS } from '../../schemas/units.ts'
import { metricsPayload } from '../payloads/metrics-payload.ts'
import { SIGNAL_WORKSPACES, type Slot, slotsUntil, workspaceNumberOf } from './filled-time.ts'
import { fillWithParts, type StoredRows, storedRows, withPatientClient } from './insert-parts.ts'
import { type Arrival, storeArrivals } from './store-arrivals.ts'
import { workspaceId } from './stored-traces.ts'

/** Days with points. */
export const POINT_DAYS = 4
/** Number of metrics, each of which every workspace has. */
const METRICS = 24
const MINUTES_PER_DAY = 1_440
/** Services of a workspace. */
const SERVICES = 8

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
 * the points of a few hours. Every series has a point a minute, and counters and histograms grow each minute.
 */
export async function fillPoints(url: string, points: number, endMs: number): Promise<StoredRows> {
  return withPatientClient(url, async client => {
    const hosts = Array.from({ length: countHosts(points) }, (_, host) => host)
    const slots = slotsUntil(endMs, POINT_DAYS)
    const beginMs = slots[0]?.fromMs ?? endMs
    await fillWithParts(
      client,
      'metric_points',
      slots.map(slot => () => storeArrivals(client, 'metrics', arrivalsOf(slot, hosts, beginMs))),
    )
    return storedRows(client, 'metric_points')
  })
}

/** Returns the requests of a slot: one a minute for the hosts of a workspace and service. */
function* arrivalsOf({ fromMs, lengthMs }: Slot, hosts: readonly number[], beginMs: number): Generator<Arrival> {
  const groups = Map.groupBy(hosts, host => workspaceNumberOf(host) * SERVICES + (host % SERVICES))
  const nanos = (ms: number) => BigInt(Math.floor(ms)) * 1_000_000n
  for (let atMs = fromMs; atMs < fromMs + lengthMs; atMs += MINUTE_MS) {
    const minute = Math.round((atMs - beginMs) / MINUTE_MS) + 1
    for (const [group, series] of groups) {
      const body = metricsPayload({
        points: METRICS * series.length,
        pointsPerMetric: series.length,
        series,
        growth: minute,
        service: `shop-${group % SERVICES}`,
        startTimeUnixNano: nanos(beginMs - MINUTE_MS),
        timeUnixNano: nanos(atMs + (group * MINUTE_MS) / (SIGNAL_WORKSPACES * SERVICES)),
      })
      yield { workspaceId: workspaceId(Math.floor(group / SERVICES)), receivedAtMs: Math.floor(atMs) + 200, body }
    }
  }
}
