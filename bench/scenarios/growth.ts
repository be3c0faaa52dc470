import { errorMessage } from '../../shared/runtime/errors.ts'
import type { LoadPlan } from '../load/plan.ts'
import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import { measureStored, SPANS, type Stored, tracesPlan } from '../measure/measure-stored.ts'
import { summarize } from '../report/statistics.ts'
import { createFleet, type Fleet, type RunningFleet, useByKind } from '../services/fleet.ts'
import { issueSurfaces } from '../services/start-product.ts'
import { type BenchClickHouse, startBenchClickHouse, startBenchRedis } from '../services/start-stores.ts'
import { type Results, rowsOf, samplesOf, succeeded } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioRun } from '../support/scenario.ts'

const MOST_SURFACES = 1_000
const SURFACES_PER_WORKSPACE = 10
/** Connections of all generators together. */
const CONNECTIONS = 64
/** Number of different payloads, one for every surface of the largest point. */
const POOL = MOST_SURFACES
const GENERATORS = 2
const ROUNDS = 2
/** Long enough that compiling the code of eight workers is a small part of their cost. */
const DURATION_MS = 10_000

interface Point {
  readonly edges: number
  readonly workers: number
  readonly surfaces: number
}

interface Grown extends Stored {
  readonly rowsPerInsert: number
}

/** First point of every series, measured once a round for all of them. */
const BASE: Point = { edges: 1, workers: 1, surfaces: 1 }

/** Values of each series, by the name of its line. */
const SERIES = { workers: [1, 2, 4, 8], edges: [1, 2], surfaces: [1, 10, 100, MOST_SURFACES] } as const
const QUICK_SERIES = { workers: [1, 2, 8], edges: [1, 2], surfaces: [1, MOST_SURFACES] } as const
type Growing = keyof typeof SERIES

interface Bench {
  readonly generators: readonly LoadGenerator[]
  readonly clickhouse: BenchClickHouse
  readonly fleet: Fleet
  /** Public keys of the surfaces of the largest point. */
  readonly publicKeys: readonly string[]
}

/** Measures the cost of more processes and surfaces. */
export const scenario: Scenario = {
  name: 'growth',
  question:
    'How do throughput and cost per span of the whole pipeline (traces, 200 spans a payload, accepted → queryable) change ' +
    'with 1 to 8 worker processes, 1 and 2 edge processes, and 1 to 1,000 surfaces?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: true })
    const clickhouse = await startBenchClickHouse(context)
    const generators: LoadGenerator[] = []
    for (let i = 0; i < GENERATORS; i++) {
      const generator = await startGenerator()
      context.onEnd(() => generator.stop())
      generators.push(generator)
    }
    const surfaces = await issueSurfaces(redis, MOST_SURFACES, SURFACES_PER_WORKSPACE)
    const fleet = createFleet(context, redis, clickhouse)
    const bench = { generators, clickhouse, fleet, publicKeys: surfaces.map(({ publicKey }) => publicKey) }
    const measured = await measureAll(context, bench)
    return {
      rows: toRows(context, measured),
      method: context.quick
        ? '1 round of 2 s a point, a warm-up for processes just started'
        : `${ROUNDS} rounds of ${DURATION_MS / 1_000} s a point, upwards and downwards; a warm-up for processes just started`,
      notes: NOTES,
      facts: { Redis: redis.version, ClickHouse: clickhouse.version },
    }
  },
}

const NOTES = [
  'Everything runs on the cores of this machine, and one edge with one worker already uses two, so more processes cannot be faster. The scenario shows that cost per span rises little, and that nothing is lost or stored twice: a point fails if count() in ClickHouse differs from the number accepted.',
  `Surfaces fill workspaces of ${SURFACES_PER_WORKSPACE}. There is one of everything that does not grow. The first point of every series is the same run.`,
  'With many workers, each processes few spans. Rows per insert show what ClickHouse saves: all workers together insert a batch of the express lane every 250 ms, of the bulk lane every 500 ms (BATCH_MAX_AGE_MS), but each worker one a second or more.',
  'Time runs from the first request until the last span can be queried; CPU time is the sum of all processes of a kind, including merges.',
]

const keyOf = ({ edges, workers, surfaces }: Point) => `${edges} ${workers} ${surfaces}`

const pointOf = (growing: Growing, count: number): Point => ({ ...BASE, [growing]: count })

/** Returns the points with workers last, so that the next round, in reverse order, starts with the running workers. */
function pointsOf(series: typeof SERIES | typeof QUICK_SERIES): Point[] {
  const grown = (['surfaces', 'edges', 'workers'] as const).flatMap(growing =>
    series[growing].slice(1).map(count => pointOf(growing, count)),
  )
  return [BASE, ...grown]
}

async function measureAll({ quick, progress, failed }: ScenarioRun, bench: Bench): Promise<Measured> {
  const points = pointsOf(quick ? QUICK_SERIES : SERIES)
  const measured = new Map(points.map(point => [keyOf(point), [] as (Grown | undefined)[]]))
  const rounds = quick ? 1 : ROUNDS
  for (let round = 1; round <= rounds; round++) {
    for (const point of round % 2 === 1 ? points : points.toReversed()) {
      const { edges, workers, surfaces } = point
      const title = `round ${round}/${rounds}: edges ${edges}, workers ${workers}, surfaces ${surfaces}`
      const grown = await measureResized(bench, point, quick).catch(error => {
        failed(`${title}: ${errorMessage(error)}`)
        return undefined
      })
      measured.get(keyOf(point))?.push(grown)
      if (grown) progress(`${title}: ${Math.round(grown.spans / grown.seconds).toLocaleString('en')} spans/s`)
    }
  }
  return measured
}

/** Results of each point by its key. */
type Measured = ReadonlyMap<string, Results<Grown>>

async function measureResized(bench: Bench, point: Point, quick: boolean): Promise<Grown> {
  const running = await bench.fleet.resize(point)
  if (running.started > 0) {
    await measurePoint(bench, running, point, (1 + running.started * 0.5) * (quick ? 500 : 1_000))
  }
  return measurePoint(bench, running, point, quick ? 2_000 : DURATION_MS)
}

async function measurePoint(
  { generators, clickhouse, publicKeys }: Bench,
  { ports, pids, inserts }: RunningFleet,
  { surfaces }: Point,
  durationMs: number,
): Promise<Grown> {
  const keys = publicKeys.slice(0, surfaces)
  const plans = generators.map((_generator, i): LoadPlan => {
    const ownKeys = keys.filter((_key, k) => k % GENERATORS === i)
    return {
      ...tracesPlan(ports[i % ports.length] as number, ownKeys.length > 0 ? ownKeys : keys),
      connections: CONNECTIONS / GENERATORS,
      payload: { spans: SPANS, pool: POOL / GENERATORS, freshIds: true },
      mode: { kind: 'closed' },
      warmUpMs: 0,
      durationMs,
    }
  })
  const before = await inserts()
  const stored = await measureStored(generators, clickhouse, { plans, pids })
  const after = await inserts()
  return { ...stored, rowsPerInsert: (after.rows - before.rows) / (after.count - before.count) }
}

function toRows({ quick }: ScenarioRun, measured: Measured): Row[] {
  const series = quick ? QUICK_SERIES : SERIES
  return (Object.keys(series) as Growing[]).flatMap(growing =>
    series[growing].flatMap(count => {
      const name = nameOf(growing, count)
      const results = measured.get(keyOf(pointOf(growing, count))) ?? []
      const isFirst = count === 1
      return rowsOf(results, () => [
        {
          ...throughput(name, results),
          ...(!isFirst && { ratios: [{ to: nameOf(growing, 1) }] }),
          ...(growing !== 'surfaces' && {}),
        },
        {
          ...cost(`cost, ${name}`, results),
          ...(!isFirst && { ratios: [{ to: `cost, ${nameOf(growing, 1)}` }] }),
        },
      ])
    }),
  )
}

const UNITS: Record<Growing, string> = { workers: 'worker process', edges: 'edge process', surfaces: 'surface' }

const nameOf = (growing: Growing, count: number) => {
  const plural = growing === 'surfaces' ? 's' : 'es'
  return `${count.toLocaleString('en')} ${UNITS[growing]}${count === 1 ? '' : plural}`
}

function throughput(name: string, all: Results<Grown>): Row {
  const results = succeeded(all)
  const uses = results.map(({ use }) => useByKind(use))
  const kinds = Object.keys(uses[0] ?? {})
  const perMillion = (seconds: readonly number[]) =>
    summarize(seconds.map((used, round) => (used / (results[round]?.spans ?? 0)) * 1e6)).median
  const generators = results.map(({ loads }) => loads.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0))
  return {
    name,
    unit: 'spans/s',
    samples: samplesOf(all, ({ spans, seconds }) => spans / seconds),
    cpu: {
      per: 'million spans',
      seconds: Object.fromEntries([
        ...kinds.map(kind => [kind, perMillion(uses.map(use => use[kind]?.cpuSeconds ?? 0))]),
        ['load generators', perMillion(generators)],
      ]),
    },
    peakMemoryBytes: Object.fromEntries(
      kinds.map(kind => [kind, Math.max(...uses.map(use => use[kind]?.peakMemoryBytes ?? 0))]),
    ),
    details: {
      'rows per insert': Math.round(summarize(results.map(({ rowsPerInsert }) => rowsPerInsert)).median).toLocaleString(
        'en',
      ),
      spans: Math.round(summarize(results.map(({ spans }) => spans)).median).toLocaleString('en'),
      refused: `${(summarize(results.map(refusedShare)).median * 100).toFixed(1)} %`,
    },
  }
}

function refusedShare({ loads }: Stored): number {
  const counted = (status: number) => loads.reduce((sum, { statuses }) => sum + (statuses[status] ?? 0), 0)
  return counted(429) / (counted(200) + counted(429))
}

/** Returns the row of the CPU time of edges, workers, Redis and ClickHouse together. */
function cost(name: string, results: Results<Grown>): Row {
  const seconds = ({ use }: Stored) => Object.values(use).reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
  return {
    name,
    unit: 'CPU s per million spans',
    samples: samplesOf(results, result => (seconds(result) / result.spans) * 1e6),
  }
}
