import type { Signal } from '../../schemas/queues/names.ts'
import { errorMessage } from '../../shared/runtime/errors.ts'
import { measurePipeline, type PipelineContender } from '../measure/measure-pipeline.ts'
import type { Stage } from '../services/start-stage.ts'
import { measureRounds } from '../support/rounds.ts'
import { BASELINE, startBaseline } from './baseline.ts'
import { startCollectors } from './otelcol/start-collector.ts'

/** Pipelines to compare the product with. */
interface Rivals {
  readonly rivals: readonly PipelineContender[]
  /** Rivals that are missing, with the reason. */
  readonly skipped: readonly string[]
}

/** Starts the Collector and another commit, as far as the environment names them. */
export async function startRivals(stage: Stage): Promise<Rivals> {
  stage.context.progress('starting the other contenders')
  const collectors = await startCollectors(stage)
  const baseline = await startBaselineIfNamed(stage)
  const skipped = [...collectors.skipped, ...baseline.skipped]
  for (const text of skipped) stage.context.progress(`left out: ${text}`)
  return { rivals: [...collectors.rivals, ...baseline.rivals], skipped }
}

async function startBaselineIfNamed(stage: Stage): Promise<Rivals> {
  const dir = process.env.BENCH_BASELINE
  if (!dir) return { rivals: [], skipped: [`${BASELINE}: it names no other checkout`] }
  try {
    return { rivals: [await startBaseline(stage, dir)], skipped: [] }
  } catch (error) {
    return { rivals: [], skipped: [`${BASELINE}: ${errorMessage(error).split('\n', 1)[0]}`] }
  }
}

/**
 * Runs a short round of large payloads that is not counted. Returns the contenders that succeeded. A
 * contender that cannot do this would only take the time of the others.
 */
export async function warmUp(
  { context, clickhouse }: Stage,
  contenders: readonly PipelineContender[],
  signal: Signal,
  durationMs: number,
): Promise<PipelineContender[]> {
  const measured = await measureRounds(context, {
    what: `${signal}, warm-up`,
    rounds: 1,
    contenders: contenders.map(contender => ({
      name: contender.name,
      measure: () => measurePipeline(clickhouse, contender, { signal, records: 200 }, durationMs),
    })),
    describe: () => 'done',
  })
  return contenders.filter(({ name }) => measured.get(name)?.[0] !== undefined)
}
