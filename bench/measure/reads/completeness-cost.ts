import { Redis } from 'ioredis'
import { pino } from 'pino'
import { assessCompleteness } from '../../../api/traces/completeness/assess-completeness.ts'
import { beginEvidence, type EvidenceDeps } from '../../../api/traces/completeness/load-evidence.ts'
import { connectTraceQueues } from '../../../api/traces/completeness/trace-queues.ts'
import { loadWaterfall } from '../../../api/traces/load-columns.ts'
import { onOneServer } from '../../../test/support/queue-on.ts'
import { type StoredTrace, type TraceTarget, targetsOf } from '../../data/stored-traces.ts'
import { percentile } from '../../report/statistics.ts'
import { rotated } from '../../support/rounds.ts'
import type { Row } from '../../support/scenario.ts'
import { type ReadPlan, timeEach } from './measure-gets.ts'
import type { ReadDeps } from './measure-reads.ts'

const TIMEOUT_MS = 20_000
const MAX_ROWS = 16_000

/**
 * Measures what the verdict on completeness adds to reading a trace as columns. The functions of the API run in this process,
 * because no request reads columns without it.
 */
export async function measureVerdict(
  { client }: ReadDeps,
  redisUrl: string,
  tracesOfSizes: readonly (readonly StoredTrace[])[],
  plan: ReadPlan,
): Promise<Row[]> {
  const redis = new Redis(redisUrl)
  const deps: EvidenceDeps = {
    clickhouse: client,
    directory: { dropping: async () => undefined },
    firstKeptDay: async () => 0,
    logger: pino({ level: 'silent' }),
    traceQueues: connectTraceQueues(onOneServer(redis)),
  }
  try {
    const rows: Row[] = []
    for (const traces of tracesOfSizes) {
      rows.push(...(await measureOfSize(deps, await targetsOf(client, traces), plan)))
    }
    return rows
  } finally {
    redis.disconnect()
  }
}

async function measureOfSize(
  deps: EvidenceDeps,
  targets: readonly TraceTarget[],
  { rounds, perRound }: ReadPlan,
): Promise<Row[]> {
  const works = [readColumns, readColumnsWithVerdict] as const
  const latencies = new Map(works.map(work => [work, [] as number[]]))
  for (let round = 0; round <= rounds; round++) {
    const times = new Map(works.map(work => [work, [] as number[]]))
    for (let i = 0; i < perRound; i++) {
      const target = targets[(round * perRound + i) % targets.length] as TraceTarget
      // Both read the same trace after one another, the first one in turn, so that the state of caches is the same.
      for (const work of rotated(works, i)) {
        times.get(work)?.push(...(await timeEach(1, async () => assertSpans(await work(deps, target), target.spans))))
      }
    }
    // The first round compiles the code.
    if (round > 0) for (const work of works) latencies.get(work)?.push(percentile(times.get(work) ?? [], 0.5))
  }
  const without = latencies.get(readColumns) ?? []
  const withVerdict = latencies.get(readColumnsWithVerdict) ?? []
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  return [
    {
      name: `completeness, trace of ${targets[0]?.spans.toLocaleString('en')}: added`,
      unit: 'ms, p50',
      samples: withVerdict.map((ms, round) => ms - (without[round] ?? 0)),
      details: {
        'columns alone': `${mean(without).toFixed(1)} ms p50`,
        'with the verdict': `${mean(withVerdict).toFixed(1)} ms p50`,
      },
    },
  ]
}

/** Reads the columns of a trace, and returns the number of its spans. */
async function readColumns({ clickhouse }: EvidenceDeps, target: TraceTarget): Promise<number> {
  const columns = await loadWaterfall(clickhouse, target, MAX_ROWS, AbortSignal.timeout(TIMEOUT_MS))
  return columns?.arranged.numbers.length ?? 0
}

/** The same as `GET /v3/traces/{traceId}` does it, with the verdict. */
async function readColumnsWithVerdict(deps: EvidenceDeps, target: TraceTarget): Promise<number> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const loadEvidence = await beginEvidence(deps, target, signal)
  const columns = await loadWaterfall(deps.clickhouse, target, MAX_ROWS, signal)
  const known = columns && (await loadEvidence(columns.arrivals))
  if (columns === undefined || known === undefined) throw new Error('the evidence of a stored trace is missing')
  assessCompleteness(columns, known)
  return columns.arranged.numbers.length
}

function assertSpans(found: number, stored: number): void {
  if (found !== stored) throw new Error(`the trace has ${found} spans instead of ${stored}`)
}
