import { summarize } from '../report/statistics.ts'
import { fitModel } from './cost-model.ts'
import { isUsualLoad, type NamedPoint } from './costs.ts'
import type { MeasuredPoint } from './measured-point.ts'

/** A measured point with what the model predicts from all other points. */
export interface CheckedPoint {
  readonly name: string
  /** CPU seconds for a million spans, of edge, workers, Redis and ClickHouse together. */
  readonly cpu: Prediction
  /** Spans a second with all cores of the machine. */
  readonly rate: Prediction
}

/** A predicted and a measured figure. */
export interface Prediction {
  readonly predicted: number
  readonly measured: number
  /** Share of the measured figure by which the prediction is too high. */
  readonly error: number
}

/** Least number of other points from which a point is predicted. */
const LEAST_OTHERS = 2

/**
 * Predicts each point from the others, so that no point is predicted from itself. The points are fleets with the usual load, and
 * payloads between two others. The rate is what all cores of the machine allow: they are as busy as at the other points.
 */
export function checkModel(points: readonly NamedPoint[]): CheckedPoint[] {
  const fleets = points.filter(isUsualLoad)
  return points
    .filter(point => isPredictable(point, points))
    .flatMap(point => {
      const others = points.filter(other => other !== point)
      const otherFleets = fleets.filter(other => other !== point)
      if (otherFleets.length < LEAST_OTHERS) return []
      const load = { spansPerPayload: point.spansPerPayload, realisticShare: point.realistic, gzipShare: point.gzip }
      const cpu = fitModel(others).cpu(load, point)
      const perMillion = (cpu.edge + cpu.worker + cpu.redis + cpu.clickhouse) * 1e6
      const busyCores = summarize(otherFleets.map(busyCoresOf)).median
      return [
        {
          name: point.name,
          cpu: compare(perMillion, totalCpu(point)),
          rate: compare((busyCores / (perMillion + point.generatorCpu)) * 1e6, point.spansPerSecond),
        },
      ]
    })
}

/** Returns whether a point is a fleet, or has a payload that is between those of other points. */
function isPredictable(point: MeasuredPoint, points: readonly MeasuredPoint[]): boolean {
  if (isUsualLoad(point)) return true
  if (point.realistic === 1 || point.gzip === 1) return false
  const others = points
    .filter(({ realistic, gzip }) => realistic === 0 && gzip === 0)
    .map(other => other.spansPerPayload)
  return Math.min(...others) < point.spansPerPayload && point.spansPerPayload < Math.max(...others)
}

const totalCpu = ({ edgeCpu, workerCpu, redisCpu, clickhouseCpu }: MeasuredPoint) =>
  edgeCpu + workerCpu + redisCpu + clickhouseCpu

/** Returns the cores that were in use, among them those of the load generator. */
const busyCoresOf = (point: MeasuredPoint) => (point.spansPerSecond * (totalCpu(point) + point.generatorCpu)) / 1e6

const compare = (predicted: number, measured: number): Prediction => ({
  predicted,
  measured,
  error: predicted / measured - 1,
})
