import { ClickHouseError } from '@clickhouse/client'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { Signal } from '../../schemas/queues/names.ts'
import { FILE_INSERTS, startFileInserts } from '../data/native-files.ts'
import { startGenerator } from '../load/start-generator.ts'
import { measurePipeline, type PipelineContender, type PipelineMeasured } from '../measure/measure-pipeline.ts'
import {
  DIRECT_PEER,
  type PipelineStage,
  PRODUCT,
  QUEUE_PEER,
  startDirectPeer,
  startProduct,
  startQueuePeer,
} from '../peers/pipeline-contenders.ts'
import { COLLECTOR, startCollector } from '../peers/start-collector.ts'
import { costRow, loadText, memoryRow, throughputRow, underLoad, unitOf } from '../report/pipeline-rows.ts'
import { QUEUE_LIMITS, startEdge } from '../services/start-product.ts'
import { startBenchClickHouse, startBenchRedis } from '../services/start-stores.ts'
import type { Goal, Row, Scenario, ScenarioContext } from '../support/scenario.ts'

/** One load. Its contenders take turns in every round. */
interface Case {
  readonly signal: Signal
  readonly records: number
  readonly rivals: readonly string[]
  /** Goal of the product. */
  readonly goal?: Goal
  readonly ratioGoals?: Readonly<Record<string, Goal>>
  /** Whether the case is only a point of the chart: shorter, and left out of a quick run. */
  readonly isPoint?: boolean
}

const CASES: readonly Case[] = [
  {
    signal: 'traces',
    records: 200,
    rivals: [QUEUE_PEER, DIRECT_PEER, FILE_INSERTS, COLLECTOR],
    goal: { atLeast: 250_000 },
    ratioGoals: { [QUEUE_PEER]: { atLeast: 6 }, [FILE_INSERTS]: { atLeast: 0.3 } },
  },
  { signal: 'traces', records: 20, rivals: [QUEUE_PEER], goal: { atLeast: 150_000 } },
  { signal: 'traces', records: 1, rivals: [], isPoint: true },
  { signal: 'traces', records: 1_000, rivals: [], isPoint: true },
  { signal: 'logs', records: 100, rivals: [], goal: { atLeast: 200_000 } },
  { signal: 'metrics', records: 200, rivals: [], goal: { atLeast: 200_000 } },
]

/** Goals for spans only: log records are indexed by word, and data points have other columns. */
const SPAN_COST_GOALS = { clickhouse: { atMost: 2.5 }, own: { atMost: 4 } }
const MEMORY_GOALS = { edge: { atMost: 200 }, worker: { atMost: 400 } }

/** Measures the whole pipeline. */
export const scenario: Scenario = {
  name: 'pipeline',
  question:
    'How many spans, log records and data points a second does the whole pipeline process from accepted to queryable, ' +
    'with one edge, one worker process, Redis and ClickHouse on this machine, and what does a million of them cost?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: true })
    const clickhouse = await startBenchClickHouse(context)
    const generator = await startGenerator()
    context.onEnd(() => generator.stop())
    const asyncInserts = await hasAsyncInserts(clickhouse.client)
    const stage: PipelineStage = { context, generator, redis, clickhouse, hasAsyncInserts: asyncInserts }
    const { rivals, skipped } = await startRivals(stage)
    const edge = await startEdge(context, redis, QUEUE_LIMITS)
    const rows: Row[] = []
    for (const signal of ['traces', 'logs', 'metrics'] as const) {
      const product = await startProduct(stage, edge, signal)
      const cases = CASES.filter(one => one.signal === signal && !(context.quick && one.isPoint))
      await warmUp(stage, [product, ...(signal === 'traces' ? rivals : [])], signal)
      for (const one of cases) {
        const contenders = [product, ...rivals.filter(({ name }) => one.rivals.includes(name))]
        rows.push(...(await measureCase(stage, contenders, one)))
      }
    }
    return {
      rows,
      skipped,
      notes: notes(asyncInserts),
      method: methodOf(context),
      facts: { Redis: redis.version, ClickHouse: clickhouse.version },
    }
  },
}

async function startRivals(stage: PipelineStage): Promise<{ rivals: PipelineContender[]; skipped: string[] }> {
  stage.context.progress('starting the other contenders')
  const rivals = await Promise.all([
    startQueuePeer(stage),
    startDirectPeer(stage),
    startFileInserts(stage.context.dir, stage.clickhouse),
  ])
  const collector = process.env.OTELCOL_BIN
  if (collector) return { rivals: [...rivals, await startCollector(stage, collector)], skipped: [] }
  const skipped = [`${COLLECTOR}: OTELCOL_BIN is not set`]
  stage.context.progress(`left out: ${skipped[0]}`)
  return { rivals, skipped }
}

const rounds = ({ quick }: ScenarioContext) => (quick ? 1 : 3)
const warmUpMs = ({ quick }: ScenarioContext) => (quick ? 500 : 1_000)
const roundMs = ({ quick }: ScenarioContext, isPoint = false) => (quick ? 1_500 : isPoint ? 2_000 : 4_000)

/** Runs a short round of large payloads that is not counted, to compile all code. */
async function warmUp(
  { context, clickhouse }: PipelineStage,
  contenders: readonly PipelineContender[],
  signal: Signal,
): Promise<void> {
  const load = { signal, records: 200 }
  for (const contender of contenders) {
    await measurePipeline(clickhouse, contender, load, warmUpMs(context))
    context.progress(`${signal}, warmed up: ${contender.name}`)
  }
}

async function measureCase(
  { context, clickhouse }: PipelineStage,
  contenders: readonly PipelineContender[],
  one: Case,
): Promise<Row[]> {
  const measured = new Map<string, PipelineMeasured[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 1; round <= rounds(context); round++) {
    for (const contender of contenders) {
      const result = await measurePipeline(clickhouse, contender, one, roundMs(context, one.isPoint))
      measured.get(contender.name)?.push(result)
      const rate = Math.round(result.records / result.seconds).toLocaleString('en')
      context.progress(
        `${loadText(one)} a payload, round ${round}/${rounds(context)}: ${contender.name} ${rate} ${unitOf(one.signal)}`,
      )
    }
  }
  return [...measured].flatMap(([name, results]) =>
    name === PRODUCT ? productRows(one, contenders, results) : [rivalRow(name, one, results)],
  )
}

function productRows(one: Case, contenders: readonly PipelineContender[], results: readonly PipelineMeasured[]): Row[] {
  const rivals = contenders.map(({ name }) => name).filter(name => name !== PRODUCT)
  const throughput: Row = {
    ...throughputRow(PRODUCT, one, results),
    ...(one.goal && { goal: one.goal }),
    ratios: rivals.map(name => {
      const goal = one.ratioGoals?.[name]
      return { to: underLoad(name, one), ...(goal && { goal }) }
    }),
    ...plotOf('pipeline', one),
  }
  if (one.isPoint) return [throughput]
  const spanGoals = one.signal === 'traces' ? SPAN_COST_GOALS : undefined
  return [
    throughput,
    { ...costRow('ClickHouse', ['ClickHouse'], one, results), ...(spanGoals && { goal: spanGoals.clickhouse }) },
    {
      ...costRow('edge, worker and Redis', ['edge', 'worker', 'Redis'], one, results),
      ...(spanGoals && { goal: spanGoals.own }),
    },
    { ...memoryRow('edge', one, results), goal: MEMORY_GOALS.edge },
    { ...memoryRow('worker', one, results), goal: MEMORY_GOALS.worker },
  ]
}

function rivalRow(name: string, one: Case, results: readonly PipelineMeasured[]): Row {
  return { ...throughputRow(name, one, results), ...(name === QUEUE_PEER && plotOf('Fastify, job per request', one)) }
}

/** Returns the point of a chart. The chart by payload size shows only spans. */
function plotOf(line: string, { signal, records }: Case): Pick<Row, 'plot'> {
  return signal === 'traces' ? { plot: { chart: 'throughput by payload size', line, x: records } } : {}
}

function methodOf(context: ScenarioContext): string {
  const seconds = (ms: number) => `${ms / 1_000} s`
  const points = context.quick ? '' : ` (1 and 1,000 spans: ${seconds(roundMs(context, true))})`
  return `a warm-up of ${seconds(warmUpMs(context))} for each contender, ${rounds(context)} rounds of ${seconds(roundMs(context))} of load${points}`
}

function notes(asyncInserts: boolean): string[] {
  return [
    'Time runs from the first request until count() in ClickHouse equals the number accepted. A round fails if the count never reaches that number or exceeds it. Clients obey 429 and Retry-After.',
    'CPU time includes the merges that the inserts caused. Trace and span ids and all times are new in every request.',
    `"${FILE_INSERTS}" reads blocks of 100,000 rows from the product’s decoder, with one insert per core. A round reads the same million spans repeatedly.`,
    'The tables of the Collector and the peers have the columns of the Collector’s ClickHouse exporter, the order and partitions of the product’s table, and no skip indexes.',
    asyncInserts
      ? 'Asynchronous inserts of ClickHouse combine the rows of the peers.'
      : 'This ClickHouse has no queue for asynchronous inserts. The peers combine the rows of concurrent requests themselves, within the same limits of time and size.',
  ]
}

/** BAD_ARGUMENTS: "Cannot flush asynchronous insert queue because it is not initialized." */
const NOT_INITIALIZED = '36'

/**
 * Returns whether this ClickHouse has a queue for asynchronous inserts. The library does not, but it accepts
 * `async_insert` without an error and makes every insert separately. Flushing the queue shows the difference.
 */
async function hasAsyncInserts(client: ClickHouseClient): Promise<boolean> {
  try {
    await client.command({ query: 'SYSTEM FLUSH ASYNC INSERT QUEUE' })
    return true
  } catch (error) {
    if (error instanceof ClickHouseError && error.code === NOT_INITIALIZED) return false
    throw error
  }
}
