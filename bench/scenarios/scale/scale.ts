import { availableParallelism } from 'node:os'
import { startGenerator } from '../../load/start-generator.ts'
import { measurePipeline, type PipelineMeasured } from '../../measure/measure-pipeline.ts'
import { figuresOf } from '../../plan/measured-point.ts'
import { throughputRow } from '../../report/pipeline-rows.ts'
import { useByKind } from '../../services/fleet.ts'
import { startBenchClickHouse, startBenchRedis } from '../../services/start-stores.ts'
import { measureRounds, type Results, rowsOf, samplesOf } from '../../support/rounds.ts'
import type { Row, Scenario, ScenarioContext, ScenarioRun } from '../../support/scenario.ts'
import { createFleets, type Fleets, type ScaleStage } from './fleets.ts'
import { BASE, type ScalePoint, scalePoints } from './points.ts'

const rounds = ({ quick }: ScenarioContext) => (quick ? 1 : 3)
const roundMs = ({ quick }: ScenarioContext) => (quick ? 1_500 : 6_000)

/** Measures what a plan of `npm run simulate` rests on. */
export const scenario: Scenario = {
  name: 'scale',
  question:
    'What does a span cost in each process and store, in CPU time, network and disk, by its payload and by the number of ' +
    'workers, partitions and shards?',
  async run(context) {
    const redis = await startBenchRedis(context, { ownRewrites: true })
    const clickhouse = await startBenchClickHouse(context)
    const generator = await startGenerator()
    context.onEnd(() => generator.stop())
    const stage: ScaleStage = { context, generator, redis, clickhouse }
    const fleets = createFleets(stage)
    const { points, skipped } = scalePoints()
    const measured = await measureRounds(context, {
      what: 'scale',
      rounds: rounds(context),
      contenders: points.map(point => ({ name: point.name, measure: () => measurePoint(stage, fleets, point) })),
      describe: ({ records, seconds }) => `${Math.round(records / seconds).toLocaleString('en')} spans/s`,
    })
    return {
      rows: points.flatMap(point => rowsOf(measured.get(point.name) ?? [], results => toRows(point, results))),
      skipped,
      notes: NOTES,
      method: methodOf(context),
      facts: { Redis: redis.version, ClickHouse: clickhouse.version },
    }
  },
}

async function measurePoint(stage: ScaleStage, fleets: Fleets, { fleet, load }: ScalePoint): Promise<PipelineMeasured> {
  const { contender, clickhouse } = await fleets.run(fleet)
  await stage.redis.rewriteLog()
  const measured = await measurePipeline(clickhouse, contender, load, roundMs(stage.context))
  return { ...measured, use: useByKind(measured.use) }
}

function toRows(point: ScalePoint, results: Results<PipelineMeasured>): Row[] {
  const { name, fleet, load } = point
  const seconds = ({ use }: PipelineMeasured) => Object.values(use).reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
  const isBase = point === BASE
  return [
    {
      ...throughputRow(name, load, results),
      name,
      ...(!isBase && { ratios: [{ to: BASE.name }] }),
      figures: figuresOf({ ...fleet, load, cores: availableParallelism() }, results),
    },
    {
      name: `cost, ${name}`,
      unit: 'CPU s per million spans',
      samples: samplesOf(results, result => (seconds(result) / result.records) * 1e6),
      ...(!isBase && { ratios: [{ to: `cost, ${BASE.name}` }] }),
    },
  ]
}

function methodOf(context: ScenarioRun): string {
  return `${rounds(context)} rounds of ${roundMs(context) / 1_000} s of load a point, in rotating order, each after a rewrite of Redis’ log; a warm-up for processes just started`
}

const NOTES = [
  'npm run simulate makes plans of these costs.',
  'Everything runs on the cores of this machine, so throughput cannot grow with processes. Cost per span is what counts: how much more of it many workers, partitions and shards need.',
  'CPU time includes the merges that the inserts caused. A round fails unless what is stored is what was accepted.',
  'Points without another number have 200 uniform spans a payload, one edge, one worker, one partition and one shard.',
]
