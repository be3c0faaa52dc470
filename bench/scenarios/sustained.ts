import { MINUTE_MS } from '../../schemas/units.ts'
import { measurePipeline, type PipelineContender, type PipelineLoad } from '../measure/measure-pipeline.ts'
import { BASELINE } from '../peers/baseline.ts'
import { COLLECTOR_IN_MEMORY } from '../peers/otelcol/start-collector.ts'
import { PRODUCT, productContender } from '../peers/pipeline-contenders.ts'
import { startRivals, warmUp } from '../peers/start-rivals.ts'
import { unitOf } from '../report/pipeline-rows.ts'
import { sustainedRows } from '../report/sustained-rows.ts'
import { poolsOfSignal, QUEUE_LIMITS, startEdge, startWorkers } from '../services/start-product.ts'
import { type Stage, startStage } from '../services/start-stage.ts'
import { measureRounds } from '../support/rounds.ts'
import type { Row, Scenario, ScenarioContext } from '../support/scenario.ts'

/**
 * No body is compressed in advance: its ids would repeat after some seconds, and tables and indexes of ids that repeat cost
 * other than a user's.
 */
const LOADS: readonly PipelineLoad[] = [
  { signal: 'traces', records: 200, data: 'realistic' },
  { signal: 'traces', records: 200 },
]
const RIVALS: readonly string[] = [BASELINE, COLLECTOR_IN_MEMORY]
/** The merges that are left after the load. Those of the largest parts take some minutes. */
const MERGES_DEADLINE_MS = 15 * MINUTE_MS

/** Measures what storing costs when it lasts, with all merges that the spans cause. */
export const scenario: Scenario = {
  name: 'sustained',
  question:
    'What does a million stored spans cost under minutes of full load, until the merges that they cause are at rest, and how ' +
    'many bytes does a span take on disk then?',
  async run(context) {
    const stage = await startStage(context)
    const { rivals, skipped } = await startRivals(stage)
    const edge = await startEdge(context, stage.redis, QUEUE_LIMITS)
    const worker = await startWorkers(context, stage.redis, stage.clickhouse, poolsOfSignal('traces'))
    const product = productContender(stage, edge, 'traces', [worker])
    const measured = [product, ...rivals.filter(({ name }) => RIVALS.includes(name))]
    const contenders = await warmUp(stage, measured, 'traces', context.quick ? 500 : 2_000)
    const rows: Row[] = []
    for (const load of LOADS) rows.push(...(await measureLoad(stage, contenders, load)))
    return { rows, skipped, notes: NOTES, method: methodOf(context), facts: stage.facts }
  },
}

/** Length of the load. */
function durationMs({ quick, full }: ScenarioContext): number {
  const minutes = Number(process.env.BENCH_SUSTAINED_MINUTES ?? (full ? 20 : 5))
  return quick ? 5_000 : minutes * MINUTE_MS
}

/** Measures the product for some minutes, then each rival until it has accepted as many spans. */
async function measureLoad(
  { context, clickhouse, redis }: Stage,
  contenders: readonly PipelineContender[],
  load: PipelineLoad,
): Promise<Row[]> {
  let recordLimit: number | undefined
  const results = await measureRounds(context, {
    what: `${load.data ?? 'uniform'} spans`,
    rounds: 1,
    contenders: contenders.map(contender => ({
      name: contender.name,
      async measure() {
        await redis.rewriteLog()
        const limited = { ...load, ...(recordLimit !== undefined && { recordLimit }) }
        // No rival is so slow that it takes ten times as long for the same rows.
        const limitMs = durationMs(context) * (recordLimit === undefined ? 1 : 10)
        const measured = await measurePipeline(clickhouse, contender, limited, limitMs, MERGES_DEADLINE_MS)
        if (contender.name === PRODUCT) recordLimit = measured.records
        return measured
      },
    })),
    describe: ({ records, seconds }) => `${Math.round(records / seconds).toLocaleString('en')} ${unitOf(load.signal)}`,
  })
  return sustainedRows(load, results)
}

const methodOf = (context: ScenarioContext) =>
  `one load of ${durationMs(context) / 1_000} s of each kind of spans after a warm-up, 200 a payload, as fast as the product takes them; each rival until it has taken as many`

const NOTES = [
  'CPU time counts from the first request until every accepted span can be queried and ClickHouse neither merges nor inserts any more. The cost of merges for a span grows with the number of spans, so every contender is measured with as many.',
  '"Rewrites of a row": rows that merges wrote again for each row that was inserted, in all tables.',
  '"Bytes": all tables of the contender after the merges. Realistic and uniform spans as in `pipeline`; every request has new ids and times.',
]
