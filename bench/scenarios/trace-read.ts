import { DAY_MS } from '../../schemas/units.ts'
import { type Filled, fillSpans } from '../data/fill-spans.ts'
import { mergePastDays, withPatientClient } from '../data/insert-parts.ts'
import { DAYS, PARTS_PER_DAY, pick, type StoredTrace, targetsOf, WORKSPACES } from '../data/stored-traces.ts'
import { settleMerges } from '../measure/clickhouse-work.ts'
import { type SpanSource, startSpanSource } from '../measure/measure-storing-more.ts'
import { measureVerdict } from '../measure/reads/completeness-cost.ts'
import { type FindingsSize, measureFindingReads } from '../measure/reads/finding-reads.ts'
import type { ReadPlan } from '../measure/reads/measure-gets.ts'
import { LARGE_TRACE, type MeasuredReads, measureReads, type ReadDeps } from '../measure/reads/measure-reads.ts'
import { measureWhileIngesting } from '../measure/reads/read-conditions.ts'
import { measureTraceSearches } from '../measure/reads/trace-searches.ts'
import { measureTraceSizes } from '../measure/reads/trace-sizes.ts'
import { startStage } from '../services/start-stage.ts'
import type { BenchClickHouse } from '../services/start-stores.ts'
import { type ReadBy, startTraceReader } from '../services/start-trace-reader.ts'
import { attempt } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioResult, ScenarioRun } from '../support/scenario.ts'

const MILLION = 1_000_000

interface Size {
  /** Number of reads of each trace size. */
  readonly reads: ReadPlan
  readonly storeMoreMs: number
  readonly millions: readonly number[]
  /** Reads while spans arrive. */
  readonly ingesting: { readonly rounds: number; readonly durationMs: number }
  /** Number of searches of each kind. */
  readonly searches: ReadPlan
  readonly findings: FindingsSize
}

const FULL: Size = {
  millions: [1, 100],
  reads: { rounds: 5, perRound: 100 },
  storeMoreMs: 4_000,
  ingesting: { rounds: 3, durationMs: 8_000 },
  searches: { rounds: 3, perRound: 20 },
  findings: { occurrences: 1_000_000, findings: 5_000, reads: { rounds: 3, perRound: 20 } },
}
const QUICK: Size = {
  millions: [1, 3],
  reads: { rounds: 3, perRound: 40 },
  storeMoreMs: 1_500,
  ingesting: { rounds: 1, durationMs: 2_000 },
  searches: { rounds: 2, perRound: 6 },
  findings: { occurrences: 200_000, findings: 2_000, reads: { rounds: 2, perRound: 6 } },
}

/** Reads among a number of stored spans. */
interface Filling {
  readonly millions: number
  readonly filled: Filled
  readonly reads: Readonly<Record<ReadBy, MeasuredReads>>
  /** Spans that the product stored in a second, besides the filled ones. */
  readonly spansPerSecond: number
}

/** Measures reads of traces and findings. */
export const scenario: Scenario = {
  name: 'trace-read',
  question:
    'How long does reading a trace take, of a finding and by its id, with 1 and 100 million spans stored? How long does reading ' +
    'traces of 10 to 100,000 spans take, and reading lists of findings and single findings with a million occurrences?',
  run: context => run(context, context.quick ? QUICK : FULL),
}

async function run(context: ScenarioRun, size: Size): Promise<ScenarioResult> {
  const stage = await startStage(context)
  const { redis, clickhouse } = stage
  const reader = await startTraceReader(context, redis, clickhouse)
  const source = await startSpanSource(stage)
  const deps = { reader, client: clickhouse.client, pids: { API: reader.pid, ClickHouse: clickhouse.pid } }
  // A warm-up that compiles the code. The first stage removes the spans.
  await source.storeMore(size.storeMoreMs / 2)

  const stages: Filling[] = []
  for (const millions of size.millions)
    stages.push(await measureStage(context, size, millions, clickhouse, deps, source))
  const last = stages.at(-1) as Filling
  const { small, large } = last.filled
  const targets = await targetsOf(deps.client, pick(large, size.reads.perRound))
  const ofEachSize = [small, large].map(traces => pick(traces, size.reads.rounds * size.reads.perRound))
  const part = (what: string, work: () => Promise<Row[]>) => {
    context.progress(what)
    return attempt(context, what, [], work)
  }
  const rows = [
    ...stages.flatMap(toRows),
    ...(await part('while ingesting', async () => {
      const plan = { ...size.ingesting, targets, spansPerSecond: last.spansPerSecond / 2 }
      const ofFindings = await measureWhileIngesting(deps, source, context, { ...plan, by: 'finding' })
      return [...ofFindings, ...(await measureWhileIngesting(deps, source, context, { ...plan, by: 'id' }))]
    })),
    ...(await part('traces by size', () => measureTraceSizes(deps, firstDay()))),
    ...(await part('completeness', () => measureVerdict(deps, redis.url(0), ofEachSize, size.reads))),
    ...(await part('searches', () => measureTraceSearches(deps, [...small, ...large], size.searches))),
    ...(await part('many parts', () => measureManyParts(context, size, last, clickhouse, deps))),
    ...(await part('findings', () => measureFindingReads(deps, size.findings))),
  ]
  return { rows, method: methodOf(size), notes: NOTES, facts: stage.facts }
}

/** Days of the default retention, of which each has as many parts as a day of the other stages. */
const MANY_DAYS = 30

/** Reads large traces among the same number of spans in parts of a month, and with a part for each past day. */
async function measureManyParts(
  { progress }: ScenarioRun,
  { reads }: Size,
  { millions, filled }: Filling,
  { url }: BenchClickHouse,
  deps: ReadDeps,
): Promise<Row[]> {
  const merge = () => withPatientClient(url, client => mergePastDays(client, 'spans'))
  const measure = async (where: string, parts: number, large: readonly StoredTrace[], to?: string): Promise<Row[]> => {
    progress(`${millions} million stored in ${parts} parts`)
    const measured = await readEach(deps, large, reads)
    return BOTH.flatMap(by => readRows(by, where, measured[by], { parts: String(parts) }, to))
  }
  const where = `${MANY_DAYS} days of parts`
  const merged = await measure('past days merged', await merge(), filled.large)
  const month = await fillSpans(url, millions * MILLION, daysAgo(MANY_DAYS - 1), MANY_DAYS)
  return [
    ...merged,
    ...(await measure(where, month.parts, month.large, storedText(millions))),
    ...(await measure(`${where}, past days merged`, await merge(), month.large, 'past days merged')),
  ]
}

const BOTH = ['finding', 'id'] as const

/** Reads the same large traces as those of a finding, and by their ids. */
async function readEach(deps: ReadDeps, large: readonly StoredTrace[], reads: ReadPlan) {
  const targets = await targetsOf(deps.client, pick(large, reads.rounds * reads.perRound))
  return {
    finding: await measureReads(deps, targets, 'finding', reads),
    id: await measureReads(deps, targets, 'id', reads),
  }
}

async function measureStage(
  { progress }: ScenarioRun,
  { reads, storeMoreMs }: Size,
  millions: number,
  clickhouse: BenchClickHouse,
  deps: ReadDeps,
  source: SpanSource,
): Promise<Filling> {
  const name = storedText(millions)
  const filled = await fillSpans(clickhouse.url, millions * MILLION, firstDay())
  progress(`${name}: filled in ${filled.seconds.toFixed(0)} s`)
  const measured = await readEach(deps, filled.large, reads)
  progress(`${name}: p99 ${measured.finding.p99Ms.map(ms => ms.toFixed(1)).join(', ')} ms`)
  await clickhouse.client.command({ query: 'SYSTEM START MERGES spans' })
  await settleMerges(clickhouse.client)
  return { millions, filled, reads: measured, spansPerSecond: await source.storeMore(storeMoreMs) }
}

/** Returns the first filled day. The last one is yesterday, so that new spans belong to another day. */
const firstDay = () => daysAgo(DAYS)

const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)

const methodOf = ({ reads, findings, ingesting }: Size) =>
  `${reads.perRound / 2} reads to warm up, ${reads.rounds} rounds of ${reads.perRound}, one read after the other; ` +
  `traces by size and findings: 3 rounds of 40 to 4 and ${findings.reads.rounds} of ${findings.reads.perRound}; while ingesting: ` +
  `${ingesting.rounds} rounds of ${ingesting.durationMs / 1_000} s without and with spans at half of the rate that is stored`

const NOTES = [
  `Spans of ${WORKSPACES} workspaces in ${DAYS} days of ${PARTS_PER_DAY} parts, the largest number that merges were seen to leave, each with what arrived in three hours. The spans of a trace arrive within five seconds. One trace in 500 has 1,000 spans. The reader does not know the day. All data is in the page cache.`,
  'Traces are read in a pseudo-random order (the same in every run), through the API by one client that only counts the bytes of a body. p50 and p99 are of a round.',
  `"${MANY_DAYS} days of parts": as many spans in ${MANY_DAYS} days of ${PARTS_PER_DAY} parts. "Past days merged": days before yesterday have one part each, to which ClickHouse merges them when their parts are a day old.`,
  'More spans are sent to the edge, 200 a payload. They belong to the day after the stored spans, and parts of different days are never merged.',
  'Traces "by size" are added to those of the last stage. A response shows at most 2,000 spans. All findings belong to one workspace, with occurrences over the last 7 days, of which one finding has a tenth. "Rows read" is the sum over all queries of a request as ClickHouse counts it: whole granules of 8,192 rows (64 in the table of five minutes) of every part that is read.',
  '"Completeness, added" is the difference of the medians of reading a trace as columns with and without the verdict, by the functions of the API in the process of the bench, each trace with both.',
]

const storedText = (millions: number) => `${millions} million stored`

function toRows({ millions, filled, reads }: Filling): Row[] {
  const stored = `${filled.spans.toLocaleString('en')} spans in ${filled.parts} parts, ${filled.bytesPerSpan.toFixed(1)} bytes each`
  return BOTH.flatMap(by => {
    const { rows, answerBytes, cpuMs } = reads[by]
    const details = {
      'rows read': Math.round(rows).toLocaleString('en'),
      answer: `${Math.round(answerBytes).toLocaleString('en')} bytes`,
      stored,
    }
    const [p50, p99] = readRows(by, storedText(millions), reads[by], details, millions > 1 ? storedText(1) : undefined)
    return [{ ...p50, cpu: { per: 'thousand reads', seconds: cpuMs } }, p99]
  })
}

/** Returns the rows of p50 and p99, the first one with its ratio to that of the reads elsewhere. */
function readRows(
  by: ReadBy,
  where: string,
  { p50Ms, p99Ms }: MeasuredReads,
  details: Row['details'],
  elsewhere?: string,
): [Row, Row] {
  const name = `${LARGE_TRACE[by]}, ${where}`
  const ratios = elsewhere === undefined ? [] : [{ to: `${LARGE_TRACE[by]}, ${elsewhere}` }]
  return [
    { name, unit: 'ms, p50', samples: p50Ms, ratios, ...(details && { details }) },
    { name: `${name}, p99`, unit: 'ms, p99', samples: p99Ms, ratios: [{ to: name }] },
  ]
}
