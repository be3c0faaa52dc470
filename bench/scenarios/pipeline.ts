import type { Signal } from '../../schemas/queues/names.ts'
import { FILE_INSERTS, startFileInserts } from '../data/native-files.ts'
import {
  measurePipeline,
  type PipelineContender,
  type PipelineLoad,
  type PipelineMeasured,
} from '../measure/measure-pipeline.ts'
import { BASELINE } from '../peers/baseline.ts'
import { COLLECTOR_IN_MEMORY, COLLECTOR_PERSISTENT } from '../peers/otelcol/start-collector.ts'
import { PRODUCT, productContender } from '../peers/pipeline-contenders.ts'
import { startRivals, warmUp } from '../peers/start-rivals.ts'
import { costRow, memoryRow, throughputRow, underLoad, unitOf } from '../report/pipeline-rows.ts'
import { poolsOfSignal, QUEUE_LIMITS, startEdge, startWorkers } from '../services/start-product.ts'
import { type Stage, startStage } from '../services/start-stage.ts'
import { measureRounds, type Results, rowsOf } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioContext } from '../support/scenario.ts'

interface GroupLoad {
  readonly load: PipelineLoad
  readonly rivals: readonly string[]
  /** Whether a quick run leaves the load out. */
  readonly isDetail?: boolean
}

/** Loads that are measured in the same rounds, and the contenders of each besides the product. */
interface Group {
  readonly signal: Signal
  readonly loads: readonly GroupLoad[]
}

const spans = (records: number, options: Pick<PipelineLoad, 'data' | 'gzip'> = {}): PipelineLoad => ({
  signal: 'traces',
  records,
  ...options,
})
const REALISTIC = { data: 'realistic', gzip: 'half' } as const
const COLLECTORS = [COLLECTOR_IN_MEMORY, COLLECTOR_PERSISTENT]

const GROUPS: readonly Group[] = [
  {
    signal: 'traces',
    loads: [
      { load: spans(200), rivals: [FILE_INSERTS, ...COLLECTORS, BASELINE] },
      { load: spans(200, REALISTIC), rivals: [COLLECTOR_IN_MEMORY, BASELINE] },
      { load: spans(200, { gzip: 'all' }), rivals: [], isDetail: true },
      { load: spans(200, { data: 'exceptions' }), rivals: [], isDetail: true },
    ],
  },
  {
    signal: 'traces',
    loads: [
      { load: spans(20), rivals: [...COLLECTORS, BASELINE] },
      { load: spans(20, REALISTIC), rivals: [], isDetail: true },
    ],
  },
  { signal: 'traces', loads: [{ load: spans(1), rivals: [BASELINE] }] },
  { signal: 'logs', loads: [{ load: { signal: 'logs', records: 100 }, rivals: [] }] },
  { signal: 'metrics', loads: [{ load: { signal: 'metrics', records: 200 }, rivals: [] }] },
]

/** Measures the whole pipeline. */
export const scenario: Scenario = {
  name: 'pipeline',
  question:
    'How many spans, log records and data points a second does the whole pipeline process from accepted to queryable, ' +
    'with one edge, one worker process, Redis and ClickHouse on this machine, and what does a million of them cost?',
  async run(context) {
    const stage = await startStage(context)
    const { rivals: others, skipped } = await startRivals(stage)
    const rivals = [await startFileInserts(context.dir, stage.clickhouse), ...others]
    const edge = await startEdge(context, stage.redis, QUEUE_LIMITS)
    const rows: Row[] = []
    for (const signal of ['traces', 'logs', 'metrics'] as const) {
      // A process for this signal only, so that its cost is not mixed with that of another one.
      const worker = await startWorkers(context, stage.redis, stage.clickhouse, poolsOfSignal(signal))
      const product = productContender(stage, edge, signal, [worker])
      const groups = GROUPS.filter(group => group.signal === signal)
      const contenders = [product, ...(signal === 'traces' ? rivals : [])]
      const warm = await warmUp(stage, contenders, signal, warmUpMs(context))
      for (const group of groups) rows.push(...(await measureGroup(stage, warm, group)))
    }
    return { rows, skipped, notes: NOTES, method: methodOf(context), facts: stage.facts }
  },
}

const rounds = ({ quick }: ScenarioContext) => (quick ? 1 : 3)
const warmUpMs = ({ quick }: ScenarioContext) => (quick ? 500 : 1_000)
const roundMs = ({ quick }: ScenarioContext) => (quick ? 1_500 : 6_000)

async function measureGroup(
  { context, clickhouse, redis }: Stage,
  contenders: readonly PipelineContender[],
  { signal, loads }: Group,
): Promise<Row[]> {
  const measuredLoads = loads.filter(({ isDetail }) => !(context.quick && isDetail))
  const entries = measuredLoads.flatMap(({ load, rivals }) =>
    contenders
      .filter(({ name }) => name === PRODUCT || rivals.includes(name))
      .map(contender => ({ contender, load, name: underLoad(contender.name, load) })),
  )
  const warm = new Set<string>()
  const measured = await measureRounds(context, {
    what: `${loads[0]?.load.records} a payload`,
    rounds: rounds(context),
    contenders: entries.map(({ contender, load, name }) => ({
      name,
      async measure() {
        // A round is too short for a fair share of a rewrite.
        await redis.rewriteLog()
        // Code that only this load runs is compiled before. Else a first round of small payloads is half as fast.
        if (!warm.has(name)) await measurePipeline(clickhouse, contender, load, warmUpMs(context))
        warm.add(name)
        return measurePipeline(clickhouse, contender, load, roundMs(context))
      },
    })),
    describe: ({ records, seconds }) => `${Math.round(records / seconds).toLocaleString('en')} ${unitOf(signal)}`,
  })
  return entries.flatMap(({ contender, load, name }) => {
    const results = measured.get(name) ?? []
    const contendersOfLoad = entries.filter(entry => entry.load === load).map(entry => entry.name)
    return rowsOf(results, () =>
      contender.name === PRODUCT
        ? productRows(load, loads[0]?.load, contendersOfLoad, results)
        : [throughputRow(contender.name, load, results)],
    )
  })
}

/** Returns the rows of the product. The cost of other loads is compared with that of the first load of the group. */
function productRows(
  load: PipelineLoad,
  first: PipelineLoad | undefined,
  contenders: readonly string[],
  results: Results<PipelineMeasured>,
): Row[] {
  const name = underLoad(PRODUCT, load)
  const throughput: Row = {
    ...throughputRow(PRODUCT, load, results),
    ratios: contenders.filter(other => other !== name).map(to => ({ to })),
  }
  const costs = [
    costRow('ClickHouse', ['ClickHouse'], load, results),
    costRow('edge, worker and Redis', ['edge', 'worker', 'Redis'], load, results),
  ]
  const ratioOf = (title: string) => (first && first !== load ? { ratios: [{ to: underLoad(title, first) }] } : {})
  return [
    throughput,
    ...costs.map((row, i) => ({ ...row, ...ratioOf(i === 0 ? 'ClickHouse' : 'edge, worker and Redis') })),
    memoryRow('edge', load, results),
    memoryRow('worker', load, results),
  ]
}

function methodOf(context: ScenarioContext): string {
  const seconds = (ms: number) => `${ms / 1_000} s`
  return `warm-ups of ${seconds(warmUpMs(context))} for each contender and load, ${rounds(context)} rounds of ${seconds(roundMs(context))} of load, in rotating order, each after a rewrite of Redis’ log`
}

const NOTES = [
  'Time runs from the first request until count() in ClickHouse equals the number accepted. A round fails if the count never reaches that number or exceeds it. Clients obey 429 and Retry-After.',
  'CPU time includes the merges that the inserts caused. Trace and span ids and all times are new in every request.',
  `"${FILE_INSERTS}" reads blocks of 100,000 rows from the product’s decoder, with one insert per core. A round reads the same million spans repeatedly.`,
  'The Collector has the tables and indexes that its exporter creates. With the queue in memory it acknowledges what a crash loses; the product and the persistent queue acknowledge what is on disk.',
  'Realistic spans: 24 services on many hosts; routes, statements, users and errors by Zipf’s law; 5 % with an exception, 10 % with another event; every second body as gzip of level 6. The ids of compressed bodies repeat after 600,000 spans.',
]
