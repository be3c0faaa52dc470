import { distantUrl } from '../../test/support/services/distant-url.ts'
import { measurePipeline, type PipelineLoad, type PipelineMeasured } from '../measure/measure-pipeline.ts'
import type { ProcessUse } from '../measure/process-meter.ts'
import { productContender } from '../peers/pipeline-contenders.ts'
import { figuresOf } from '../plan/measured-point.ts'
import { throughputRow } from '../report/pipeline-rows.ts'
import {
  type BenchEdge,
  type BenchWorkers,
  poolsOfSignal,
  QUEUE_LIMITS,
  startEdge,
  startWorkers,
} from '../services/start-product.ts'
import { type Stage, startStage } from '../services/start-stage.ts'
import { measureRounds, type Results, rowsOf, samplesOf } from '../support/rounds.ts'
import type { Row, Scenario } from '../support/scenario.ts'

/** A number of worker processes under a load. There is one edge. */
interface ScalePoint {
  readonly name: string
  readonly workers: number
  readonly load: PipelineLoad
}

const UNIFORM: PipelineLoad = { signal: 'traces', records: 200 }
/** The point with which all others are compared. */
const BASE: ScalePoint = { name: '1 of each', workers: 1, load: UNIFORM }

const POINTS: readonly ScalePoint[] = [
  BASE,
  { name: '1 span a payload', workers: 1, load: { ...UNIFORM, records: 1 } },
  { name: '20 spans a payload', workers: 1, load: { ...UNIFORM, records: 20 } },
  { name: '1,000 spans a payload', workers: 1, load: { ...UNIFORM, records: 1_000 } },
  { name: 'realistic spans', workers: 1, load: { ...UNIFORM, data: 'realistic' } },
  { name: 'realistic spans, gzip', workers: 1, load: { ...UNIFORM, data: 'realistic', gzip: 'all' } },
  { name: '2 workers', workers: 2, load: UNIFORM },
  { name: '4 workers', workers: 4, load: UNIFORM },
]

/** Measures what a plan of `npm run simulate` rests on. */
export const scenario: Scenario = {
  name: 'scale',
  question:
    'What does a span cost in each process and store, in CPU time, network and disk, by its payload and by the number of workers?',
  async run(context) {
    const stage = await startStage(context)
    const edge = await startEdge(context, stage.redis, QUEUE_LIMITS)
    const workers: BenchWorkers[] = []
    const [rounds, roundMs] = context.quick ? [1, 1_500] : [3, 6_000]
    const measured = await measureRounds(context, {
      what: 'scale',
      rounds,
      contenders: POINTS.map(point => ({
        name: point.name,
        measure: () => measurePoint(stage, edge, workers, point, roundMs),
      })),
      describe: ({ records, seconds }) => `${Math.round(records / seconds).toLocaleString('en')} spans/s`,
    })
    return {
      rows: POINTS.flatMap(point => rowsOf(measured.get(point.name) ?? [], results => toRows(point, results))),
      notes: NOTES,
      method: `${rounds} rounds of ${roundMs / 1_000} s of load a point, in rotating order, each after a rewrite of Redis’ log; a warm-up for processes just started`,
      facts: stage.facts,
    }
  },
}

async function measurePoint(
  stage: Stage,
  edge: BenchEdge,
  workers: BenchWorkers[],
  point: ScalePoint,
  durationMs: number,
): Promise<PipelineMeasured> {
  const { context, redis, clickhouse } = stage
  const distant = { ...clickhouse, url: distantUrl(clickhouse.url) }
  const isNew = workers.length < point.workers
  while (workers.length > point.workers) await workers.pop()?.stop()
  while (workers.length < point.workers)
    workers.push(await startWorkers(context, redis, distant, poolsOfSignal('traces')))
  const contender = productContender(stage, edge, 'traces', workers)
  if (isNew) await measurePipeline(clickhouse, contender, UNIFORM, ((1 + point.workers) * durationMs) / 6)
  await redis.rewriteLog()
  const measured = await measurePipeline(clickhouse, contender, point.load, durationMs)
  return { ...measured, use: withOneWorker(measured.use) }
}

/** Joins the workers: the sum of their CPU time, and the memory of the largest. */
function withOneWorker(use: PipelineMeasured['use']): Record<string, ProcessUse> {
  const joined: Record<string, ProcessUse> = {}
  for (const [name, { cpuSeconds, peakMemoryBytes }] of Object.entries(use)) {
    const kind = name.replace(/ \d+$/, '')
    const known = joined[kind] ?? { cpuSeconds: 0, peakMemoryBytes: 0 }
    joined[kind] = {
      cpuSeconds: known.cpuSeconds + cpuSeconds,
      peakMemoryBytes: Math.max(known.peakMemoryBytes, peakMemoryBytes),
    }
  }
  return joined
}

function toRows(point: ScalePoint, results: Results<PipelineMeasured>): Row[] {
  const { name, load, workers } = point
  const seconds = ({ use }: PipelineMeasured) => Object.values(use).reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
  const isBase = point === BASE
  return [
    {
      ...throughputRow(name, load, results),
      name,
      ...(!isBase && { ratios: [{ to: BASE.name }] }),
      figures: figuresOf(workers, load, results),
    },
    {
      name: `cost, ${name}`,
      unit: 'CPU s per million spans',
      samples: samplesOf(results, result => (seconds(result) / result.records) * 1e6),
      ...(!isBase && { ratios: [{ to: `cost, ${BASE.name}` }] }),
    },
  ]
}

const NOTES = [
  'npm run simulate makes plans of these costs.',
  'Everything runs on the cores of this machine, so throughput cannot grow with processes. Cost per span is what counts: how much more of it many workers need.',
  'CPU time includes the merges that the inserts caused. A round fails unless what is stored is what was accepted.',
  'Workers reach ClickHouse by an address that is not of the loopback, so their inserts are compressed as between machines.',
  'Points without another number have 200 uniform spans a payload, one edge and one worker.',
]
