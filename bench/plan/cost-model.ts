import { isUsualLoad, USUAL_PAYLOAD } from './costs.ts'
import type { MeasuredPoint } from './measured-point.ts'

/** Spans of a load. */
interface SpanLoad {
  readonly spansPerPayload: number
  /** Share of the spans that are realistic. The others are uniform. */
  readonly realisticShare: number
  /** Share of the bodies that are sent as gzip. */
  readonly gzipShare: number
}

/** CPU seconds of one span. */
export interface SpanCpu {
  readonly edge: number
  readonly worker: number
  readonly redis: number
  readonly clickhouse: number
}

/** Bytes of one span. */
export interface SpanBytes {
  readonly body: number
  readonly redisReceived: number
  readonly redisSent: number
  readonly clickhouseReceived: number
  readonly stored: number
}

/** Rows of a batch, and the shards that each have a part of them. */
export interface BatchShape {
  readonly rowsPerInsert: number
  readonly shards?: number
}

/** A batch that is so large that its inserts cost nothing. */
export const ENDLESS_BATCH: BatchShape = { rowsPerInsert: Number.POSITIVE_INFINITY }

/** Costs as functions of the load. */
export interface CostModel {
  /** Returns the cost of a span in batches of this kind. */
  cpu(load: SpanLoad, batch: BatchShape): SpanCpu
  /** CPU seconds of ClickHouse for an insert, whatever its rows. */
  readonly clickhouseCpuPerInsert: number
  bytes(load: SpanLoad): SpanBytes
  /** Rows of a batch that a worker at its limit collects. */
  fullBatchRows(load: SpanLoad): number
}

type CpuName = 'edgeCpu' | 'workerCpu' | 'redisCpu' | 'clickhouseCpu'
type BytesName = 'bodyBytes' | 'redisReceivedBytes' | 'redisSentBytes' | 'clickhouseReceivedBytes' | 'storedBytes'

/** Cost of a span and of an insert, in CPU seconds for a million. */
interface Line {
  readonly perSpan: number
  readonly perInsert: number
}

/**
 * Returns how often something that has a fixed cost happens for a span: a batch in workers, an insert into a shard in
 * ClickHouse.
 */
const FIXED_PER_SPAN: Record<CpuName, (batch: BatchShape) => number> = {
  edgeCpu: () => 0,
  redisCpu: () => 0,
  workerCpu: ({ rowsPerInsert }) => 1 / rowsPerInsert,
  clickhouseCpu: ({ rowsPerInsert, shards = 1 }) => shards / rowsPerInsert,
}

/** Part of a cost that no combination of factors may take away. */
const LEAST_PART = 0.1

/**
 * Fits the costs to measured points. A span costs the same in the edge and in Redis whatever the fleet is. In workers a batch
 * has a cost besides, and in ClickHouse each insert into a shard, because it makes parts that are merged. Payloads and values of
 * the spans change the cost as they did with one of each.
 */
export function fitModel(points: readonly MeasuredPoint[]): CostModel {
  const fleets = points.filter(isUsualLoad)
  if (fleets.length === 0) throw new RangeError('no point has the usual load')
  const lines: Record<CpuName, Line> = {
    edgeCpu: constant(fleets.map(({ edgeCpu }) => edgeCpu)),
    redisCpu: constant(fleets.map(({ redisCpu }) => redisCpu)),
    workerCpu: lineThrough(fleets.map(point => [FIXED_PER_SPAN.workerCpu(point), point.workerCpu])),
    clickhouseCpu: lineThrough(fleets.map(point => [FIXED_PER_SPAN.clickhouseCpu(point), point.clickhouseCpu])),
  }
  const alone = points.filter(({ workers }) => workers === 1)
  const loads = (realistic: number, gzip: number) =>
    alone.filter(point => point.realistic === realistic && point.gzip === gzip)
  const [uniform, realistic, gzip] = [loads(0, 0), loads(1, 0), loads(1, 1)]

  /** Returns the cost of a span in CPU seconds for a million, without its part of an insert. */
  function perSpan(name: CpuName, { spansPerPayload, realisticShare, gzipShare }: SpanLoad): number {
    const { perSpan: usual, perInsert } = lines[name]
    const without = (point: MeasuredPoint) => Math.max(point[name] - perInsert * FIXED_PER_SPAN[name](point), 0)
    const curve = uniform.map((point): Point => [1 / point.spansPerPayload, without(point)])
    const shape = curve.length > 0 ? interpolate(curve, 1 / spansPerPayload) - interpolate(curve, 1 / USUAL_PAYLOAD) : 0
    const factor =
      mixed(realisticShare, ratio(realistic, uniform, without)) * mixed(gzipShare, ratio(gzip, realistic, without))
    return Math.max(usual * factor + shape, usual * factor * LEAST_PART)
  }

  function bytesOf(name: BytesName, { spansPerPayload, realisticShare, gzipShare }: SpanLoad): number {
    const of = (point: MeasuredPoint) => point[name]
    const curve = (uniform.length > 0 ? uniform : fleets).map((point): Point => [1 / point.spansPerPayload, of(point)])
    const usual = interpolate(curve, 1 / USUAL_PAYLOAD)
    const factor = mixed(realisticShare, ratio(realistic, uniform, of)) * mixed(gzipShare, ratio(gzip, realistic, of))
    const shape = interpolate(curve, 1 / spansPerPayload) - usual
    return Math.max(usual * factor + shape, usual * factor * LEAST_PART)
  }

  return {
    cpu(load, batch) {
      const cost = (name: CpuName) => (perSpan(name, load) + lines[name].perInsert * FIXED_PER_SPAN[name](batch)) / 1e6
      return {
        edge: cost('edgeCpu'),
        worker: cost('workerCpu'),
        redis: cost('redisCpu'),
        clickhouse: cost('clickhouseCpu'),
      }
    },
    clickhouseCpuPerInsert: lines.clickhouseCpu.perInsert / 1e6,
    bytes: load => ({
      body: bytesOf('bodyBytes', load),
      redisReceived: bytesOf('redisReceivedBytes', load),
      redisSent: bytesOf('redisSentBytes', load),
      clickhouseReceived: bytesOf('clickhouseReceivedBytes', load),
      stored: bytesOf('storedBytes', load),
    }),
    fullBatchRows({ realisticShare }) {
      const rows = (of: readonly MeasuredPoint[]) => Math.max(...of.map(({ rowsPerInsert }) => rowsPerInsert))
      return (
        rows(fleets) * mixed(realisticShare, realistic.length > 0 ? Math.min(rows(realistic) / rows(fleets), 1) : 1)
      )
    },
  }
}

const constant = (values: readonly number[]): Line => ({
  perSpan: values.reduce((sum, value) => sum + value, 0) / values.length,
  perInsert: 0,
})

type Point = readonly [x: number, y: number]

/**
 * Returns the line of least squares. It never falls and never begins below 0: more inserts cost no less, and spans cost
 * something.
 */
function lineThrough(points: readonly Point[]): Line {
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / points.length
  const [meanX, meanY] = [mean(0), mean(1)]
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  const common = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  const slope = spread === 0 ? 0 : common / spread
  const steepest = (meanY * (1 - LEAST_PART)) / meanX
  const perInsert = Math.min(Math.max(slope, 0), steepest)
  return { perSpan: meanY - perInsert * meanX, perInsert }
}

/** Returns y at x on the straight lines between the points. Outside of them it is that of the nearest. */
function interpolate(points: readonly Point[], x: number): number {
  const sorted = points.toSorted(([a], [b]) => a - b)
  const [first, last] = [sorted[0], sorted.at(-1)]
  if (first === undefined || last === undefined) throw new RangeError('there are no points')
  if (x <= first[0]) return first[1]
  const next = sorted.findIndex(([at]) => at >= x)
  if (next === -1) return last[1]
  const [before, after] = [sorted[next - 1] ?? first, sorted[next] ?? last]
  return before[1] + ((after[1] - before[1]) * (x - before[0])) / (after[0] - before[0])
}

/** Returns 1 at a share of 0, and the factor at 1. */
const mixed = (share: number, factor: number) => 1 + share * (factor - 1)

/** Returns the ratio of a cost of the usual payloads with other values. 1 if it was not measured. */
function ratio(
  of: readonly MeasuredPoint[],
  to: readonly MeasuredPoint[],
  cost: (point: MeasuredPoint) => number,
): number {
  const usual = (points: readonly MeasuredPoint[]) => points.find(point => point.spansPerPayload === USUAL_PAYLOAD)
  const [one, other] = [usual(of), usual(to)]
  return one && other && cost(other) > 0 ? cost(one) / cost(other) : 1
}
