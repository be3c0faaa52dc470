import { type Filled, fillSpans } from '../data/fill-spans.ts'
import { DAYS, PARTS_PER_DAY, WORKSPACES } from '../data/stored-traces.ts'
import { settleMerges } from '../measure/clickhouse-work.ts'
import { type FindingsSize, measureFindingReads } from '../measure/finding-reads.ts'
import type { ReadPlan } from '../measure/measure-gets.ts'
import { type MeasuredReads, measureReads, pickTraces, type ReadDeps, spansOf } from '../measure/measure-reads.ts'
import { type SpanSource, type StoredMore, startSpanSource } from '../measure/measure-storing-more.ts'
import { measureTraceSizes } from '../measure/trace-sizes.ts'
import { setUpProduct } from '../services/product-process.ts'
import { type BenchClickHouse, startBenchClickHouse, startBenchRedis } from '../services/start-stores.ts'
import { startTraceReader } from '../services/start-trace-reader.ts'
import type { Row, Scenario, ScenarioContext, ScenarioResult } from '../support/scenario.ts'

const MILLION = 1_000_000
const DAY_MS = 86_400_000

interface Size {
  /** Number of reads of each trace size. */
  readonly reads: ReadPlan
  readonly storeMore: { readonly rounds: number; readonly durationMs: number }
  readonly millions: readonly number[]
  readonly findings: FindingsSize
}

const FULL: Size = {
  millions: [1, 100],
  reads: { rounds: 5, perRound: 60 },
  storeMore: { rounds: 1, durationMs: 4_000 },
  findings: { occurrences: 1_000_000, findings: 5_000, reads: { rounds: 2, perRound: 6 } },
}
const QUICK: Size = {
  millions: [1, 3],
  reads: { rounds: 3, perRound: 40 },
  storeMore: { rounds: 1, durationMs: 1_500 },
  findings: { occurrences: 200_000, findings: 2_000, reads: { rounds: 2, perRound: 6 } },
}

interface Stage {
  readonly millions: number
  readonly filled: Filled
  readonly small: MeasuredReads
  readonly large: MeasuredReads
  readonly more: readonly StoredMore[]
}

/** Measures reads of traces and findings. */
export const scenario: Scenario = {
  name: 'trace-read',
  question:
    'How long does reading a trace of a finding take with 1 and 100 million spans stored, and what does storing more ' +
    'spans cost then? How long does reading traces of 10 to 100,000 spans take, and reading lists of findings and single ' +
    'findings with a million occurrences?',
  run: context => run(context, context.quick ? QUICK : FULL),
}

async function run(context: ScenarioContext, size: Size): Promise<ScenarioResult> {
  const redis = await startBenchRedis(context, { ownRewrites: true })
  const clickhouse = await startBenchClickHouse(context)
  const setup = await setUpProduct(context, redis, clickhouse)
  const reader = await startTraceReader(context, setup)
  const source = await startSpanSource(context, redis, clickhouse)
  const deps = { reader, client: clickhouse.client, pids: { API: reader.pid, ClickHouse: clickhouse.pid } }
  // A warm-up that compiles the code. The first stage removes the spans.
  await source.storeMore(size.storeMore.durationMs / 2)

  const stages: Stage[] = []
  for (const millions of size.millions)
    stages.push(await measureStage(context, size, millions, clickhouse, deps, source))
  const bySize = await measureTraceSizes(deps, (size.millions.at(-1) ?? 0) * MILLION, firstDay())
  context.progress('traces by size read')
  const findings = await measureFindingReads(deps, size.findings)
  return {
    rows: [...stages.flatMap(toRows), ...bySize, ...findings],
    method: methodOf(size),
    notes: NOTES,
    facts: { Redis: redis.version, ClickHouse: clickhouse.version },
  }
}

async function measureStage(
  { progress }: ScenarioContext,
  { reads, storeMore }: Size,
  millions: number,
  clickhouse: BenchClickHouse,
  deps: ReadDeps,
  source: SpanSource,
): Promise<Stage> {
  const name = `${millions} million stored`
  const filled = await fillSpans(clickhouse.url, millions * MILLION, firstDay())
  progress(`${name}: filled in ${filled.seconds.toFixed(0)} s`)
  const read = async (isLarge: boolean) => {
    const limit = reads.rounds * reads.perRound
    const targets = await pickTraces(deps.client, millions * MILLION, firstDay(), isLarge, limit)
    const measured = await measureReads(deps, targets, isLarge, reads)
    progress(`${name}: traces of ${spansOf(isLarge)} spans, p99 ${measured.p99Ms.toFixed(1)} ms`)
    return measured
  }
  const [small, large] = [await read(false), await read(true)]
  await clickhouse.client.command({ query: 'SYSTEM START MERGES spans' })
  await settleMerges(clickhouse.client)
  const more: StoredMore[] = []
  for (let round = 0; round < storeMore.rounds; round++) more.push(await source.storeMore(storeMore.durationMs))
  progress(`${name}: ${more.map(({ spans }) => spans.toLocaleString('en')).join(' and ')} more spans stored`)
  return { millions, filled, small, large, more }
}

/** Returns the first filled day. The last one is yesterday, so that new spans belong to another day. */
const firstDay = () => new Date(Date.now() - DAYS * DAY_MS).toISOString().slice(0, 10)

const methodOf = ({ reads, storeMore, findings }: Size) =>
  `${reads.perRound / 2} reads of each size to warm up, ${reads.rounds} rounds of ${reads.perRound}, one read after the other; ` +
  `${storeMore.rounds} rounds of storing more for ${storeMore.durationMs / 1_000} s; traces by size and findings: ` +
  `3 rounds of 40 to 4 and ${findings.reads.rounds} of ${findings.reads.perRound}`

const NOTES = [
  `Spans of ${WORKSPACES} workspaces in ${DAYS} days of ${PARTS_PER_DAY} parts, the largest number that merges were seen to leave. A trace is in one part, with its id anywhere in the key space. One trace in 500 has 1,000 spans. The reader does not know the day. All data is in the page cache.`,
  'Traces are read in a pseudo-random order (the same in every run), through the API by one client. p50 is of a round, p99 of all rounds together. "Query alone" selects the spans, without the check that the trace belongs to the finding.',
  'More spans are sent to the edge, 200 a payload. They belong to the day after the stored spans, and parts of different days are never merged. CPU time is the sum of edge, worker, Redis and ClickHouse, including merges.',
  'Traces "by size" are added to those of the last stage. A response shows at most 2,000 spans. All findings belong to one workspace, with occurrences over the last 7 days, of which one finding has a tenth. "Rows read" is the sum over all queries of a request as ClickHouse counts it: whole granules of 8,192 rows (64 in the table of five minutes) of every part that is read.',
]

/** Goals for traces of 1,000 spans with 100 million spans stored. */
const GOALS = { millions: 100, p50Ms: 15, p99Ms: 30, growth: 1.5 }

function toRows(stage: Stage): Row[] {
  const isLarge = { small: false, large: true } as const
  return [
    ...readRows(stage, stage.small, isLarge.small),
    ...readRows(stage, stage.large, isLarge.large),
    ...costRows(stage),
  ]
}

function readRows({ millions, filled }: Stage, reads: MeasuredReads, isLarge: boolean): Row[] {
  const nameOf = (stored: number) => `trace of ${spansOf(isLarge).toLocaleString('en')}, ${stored} million stored`
  const hasGoals = isLarge && millions === GOALS.millions
  const goal = (atMost: number) => (hasGoals ? { goal: { atMost } } : {})
  return [
    {
      name: nameOf(millions),
      unit: 'ms, p50',
      samples: reads.p50Ms,
      ...goal(GOALS.p50Ms),
      ...(millions > 1 && { ratios: [{ to: nameOf(1), ...goal(GOALS.growth) }] }),
      cpu: { per: 'thousand reads', seconds: reads.cpuMs },
      details: {
        'query alone': `${reads.queryP50Ms.toFixed(1)} ms p50`,
        'of it in ClickHouse': `${reads.queryServerMs.toFixed(1)} ms`,
        'granules read': reads.granules.toFixed(1),
        'rows read': Math.round(reads.rows).toLocaleString('en'),
        answer: `${Math.round(reads.answerBytes).toLocaleString('en')} bytes`,
        stored: `${filled.spans.toLocaleString('en')} spans in ${filled.parts} parts, ${filled.bytesPerSpan.toFixed(1)} bytes each`,
      },
    },
    { name: `${nameOf(millions)}, p99`, unit: 'ms, p99', samples: [reads.p99Ms], ...goal(GOALS.p99Ms) },
  ]
}

function costRows({ millions, more }: Stage): Row[] {
  const nameOf = (stored: number) => `storing more, ${stored} million stored`
  const perMillion = (of: (stored: StoredMore) => number) => more.map(stored => (of(stored) / stored.spans) * MILLION)
  const processes = Object.keys(more[0]?.cpuSeconds ?? {})
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  return [
    {
      name: nameOf(millions),
      unit: 'CPU s per million spans',
      samples: perMillion(({ cpuSeconds }) => Object.values(cpuSeconds).reduce((sum, seconds) => sum + seconds, 0)),
      ...(millions > 1 && { ratios: [{ to: nameOf(1) }] }),
      cpu: {
        per: 'million spans',
        seconds: Object.fromEntries(
          processes.map(process => [process, mean(perMillion(({ cpuSeconds }) => cpuSeconds[process] ?? 0))]),
        ),
      },
      details: {
        rate: `${Math.round(mean(more.map(({ spans, seconds }) => spans / seconds))).toLocaleString('en')} spans/s`,
        spans: more.map(({ spans }) => spans.toLocaleString('en')).join(' and '),
      },
    },
  ]
}
