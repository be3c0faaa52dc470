import { LARGE_TRACE } from './measure/reads/measure-reads.ts'
import type { Goal } from './support/scenario.ts'

/** A goal for a row of a scenario, or for its ratio to another row. */
export interface GoalLine {
  readonly scenario: string
  readonly row: string
  /** The other row of a ratio. Without it, the goal is for the figure itself. */
  readonly to?: string
  readonly goal: Goal
}

const atLeast = (bound: number): Goal => ({ atLeast: bound })
const atMost = (bound: number): Goal => ({ atMost: bound })

const FIGURES: Readonly<Record<string, Readonly<Record<string, Goal>>>> = {
  decode: {
    'traces: product, 200 spans': atLeast(1_300_000),
    'traces: product, 200 spans, every tenth with an exception': atLeast(1_000_000),
    'traces: product, 1 span': atLeast(600_000),
  },
  ingest: {
    'edge and Redis, 1 span, 64 connections': atMost(12),
    'edge and Redis, 1 span, 16 connections': atMost(25),
    'open loop: p99 over that of the empty route': atMost(2),
    'one client alone: p50 over one fsync': atMost(0.3),
  },
  // Rates are of a machine on which commit 7e1a08f stored 300,000, 190,000 and 18,000 spans a second.
  pipeline: {
    'product, 200 spans': atLeast(400_000),
    'product, 20 spans': atLeast(250_000),
    'product, 1 span': atLeast(30_000),
    'product, 100 log records': atLeast(200_000),
    'product, 200 data points': atLeast(200_000),
    'edge, worker and Redis, 200 spans': atMost(2.5),
    'edge, worker and Redis, 20 spans': atMost(3.5),
    'edge, worker and Redis, 1 span': atMost(25),
    'ClickHouse, 200 spans': atMost(2),
    'ClickHouse, 20 spans': atMost(2),
    ...peaks('200 spans', '20 spans', '1 span', '200 realistic spans, half gzip', '100 log records', '200 data points'),
  },
  freshness: {
    'p99 at 50 % of capacity': atMost(500),
    'p99 at 90 % of capacity': atMost(1_000),
    'p50 with nothing else to do': atMost(50),
    'finding listed, p99 at 50 % of capacity': atMost(2_500),
  },
  alerts: {
    'p99 at 50 % of capacity': atMost(5_000),
    'idle, alerts alone': atMost(0.3),
  },
  fairness: {
    ...under('stored p99', 2_000),
    ...under('refused requests of others', 0),
    'largest share of Redis’ memory in use': atMost(70),
  },
  'trace-read': {
    'trace of 1,000, 100 million stored': atMost(10),
    'trace of 1,000 by id, 100 million stored': atMost(9),
    'by size: trace of 10,000 spans': atMost(35),
    'as columns: trace of 1,000 spans': atMost(15),
    'as columns: trace of 100,000 spans, p99': atMost(400),
    'completeness, trace of 20: added': atMost(5),
    'completeness, trace of 1,000: added': atMost(5),
    'traces: of a service, an hour, p99': atMost(100),
    'traces: newest, p99': atMost(100),
    'traces: rare attribute, p99': atMost(300),
    'findings: newest': atMost(15),
    'findings: one, a tenth of all occurrences': atMost(25),
    'findings: text of all': atMost(60),
  },
  'stored-reads': {
    'logs: frequent word, an hour, p95': atMost(150),
    'logs: rare word, an hour, p95': atMost(150),
    'logs: missing word, an hour, p95': atMost(150),
    'metrics: one series, a day, p95': atMost(100),
    'metrics: rate by route, a day, p95': atMost(100),
  },
  replay: {
    'gzip for a second of the worker’s CPU time': atLeast(17),
    'CPU time of the worker': atMost(60),
    "the edge's peak memory": atMost(300),
  },
  memory: {
    'edge, full load': atMost(200),
    'edge, ClickHouse away': atMost(200),
    'worker, full load': atMost(400),
    'worker, ClickHouse away': atMost(400),
    'worker, catching up': atMost(400),
  },
}

const IN_MEMORY = 'OpenTelemetry Collector, ClickHouse exporter, queue in memory'
const PERSISTENT = 'OpenTelemetry Collector, ClickHouse exporter, persistent queue with fsync'

/** Goals of ratios: scenario, row, the other row, bound. */
const RATIOS: readonly (readonly [string, string, string, Goal])[] = [
  ['decode', 'traces: product, 200 spans', 'traces: objects of a library, as JSON', atLeast(10)],
  ['decode', 'logs: product, 200 records', 'logs: objects of a library, as JSON', atLeast(10)],
  ['decode', 'metrics: product, 200 points', 'metrics: objects of a library, as JSON', atLeast(10)],
  ['ingest', 'product edge, 1 span, 64 connections', 'uWS, empty route, 1 span, 64 connections', atLeast(0.35)],
  ['ingest', 'open loop: product edge', 'closed loop: uWS, empty route', atLeast(0.45)],
  ['pipeline', 'product, 200 spans', 'ClickHouse alone, the same rows from files, 200 spans', atLeast(0.4)],
  ['pipeline', 'product, 200 spans', `${IN_MEMORY}, 200 spans`, atLeast(4)],
  ['pipeline', 'product, 200 spans', `${PERSISTENT}, 200 spans`, atLeast(8)],
  ['pipeline', 'product, 20 spans', `${IN_MEMORY}, 20 spans`, atLeast(3)],
  ['pipeline', 'product, 200 realistic spans, half gzip', `${IN_MEMORY}, 200 realistic spans, half gzip`, atLeast(2.8)],
  ...(['200 spans, gzip', '200 spans, every tenth with an exception'] as const).map(
    (load, i) =>
      [
        'pipeline',
        `edge, worker and Redis, ${load}`,
        'edge, worker and Redis, 200 spans',
        atMost(i === 0 ? 1.5 : 2),
      ] as const,
  ),
  ['part-load', 'edge, worker and Redis at 50 % of capacity', 'edge, worker and Redis at capacity', atMost(1.5)],
  ['part-load', 'edge, worker and Redis at 10 % of capacity', 'edge, worker and Redis at capacity', atMost(3)],
  ...['valid payloads', 'undecodable bodies'].flatMap(flood =>
    ['an unknown path', 'an unknown path, with a busy process'].map(
      path =>
        [
          'fairness',
          `acknowledged p99 under a flood of ${flood}`,
          `acknowledged p99 under a flood of ${path}`,
          atMost(2),
        ] as const,
    ),
  ),
  [
    'grpc',
    'p99 of others over HTTP, gRPC flood in the edge',
    'p99 of others over HTTP, flood of an unknown method in its own process',
    atMost(3),
  ],
  [
    'grpc',
    'p99 of others over HTTP, gRPC flood in its own process',
    'p99 of others over HTTP, flood of an unknown method in its own process',
    atMost(1.5),
  ],
  ['scale', 'cost, 4 workers', 'cost, 1 of each', atMost(1.2)],
  ...Object.values(LARGE_TRACE).flatMap(trace =>
    (
      [
        ['100 million stored', '1 million stored', 1.5],
        ['100 million stored, p99', '100 million stored', 3],
        ['30 days of parts, past days merged', 'past days merged', 1.3],
        ['while ingesting at half load', 'before ingesting', 2],
      ] as const
    ).map(([row, to, bound]) => ['trace-read', `${trace}, ${row}`, `${trace}, ${to}`, atMost(bound)] as const),
  ),
  ['replay', 'upload to stored and indexed', 'put directly', atLeast(0.7)],
]

/** The goals of all scenarios. A goal whose row is missing from a full run is reported as not measured. */
export const GOALS: readonly GoalLine[] = [
  ...Object.entries(FIGURES).flatMap(([scenario, rows]) =>
    Object.entries(rows).map(([row, goal]): GoalLine => ({ scenario, row, goal })),
  ),
  ...RATIOS.map(([scenario, row, to, goal]): GoalLine => ({ scenario, row, to, goal })),
]

/** Returns the goals of a scenario. */
export function goalsFor(name: string): GoalLine[] {
  return GOALS.filter(({ scenario }) => scenario === name)
}

/** Returns the goals of the peak memory of edge and worker. */
function peaks(...loads: readonly string[]): Record<string, Goal> {
  return Object.fromEntries(
    loads.flatMap(load => [
      [`peak memory of the edge, ${load}`, atMost(200)],
      [`peak memory of the worker, ${load}`, atMost(400)],
    ]),
  )
}

/** Returns the goals of a figure under each flood. */
function under(figure: string, bound: number): Record<string, Goal> {
  const floods = ['an unknown path', 'an unknown path, with a busy process', 'valid payloads', 'undecodable bodies']
  return Object.fromEntries(floods.map(flood => [`${figure} under a flood of ${flood}`, atMost(bound)]))
}
