import { z } from 'zod'
import type { PipelineLoad, PipelineMeasured } from '../measure/measure-pipeline.ts'
import { summarize } from '../report/statistics.ts'
import { type Results, succeeded } from '../support/rounds.ts'

const positive = z.number().positive()
const share = z.union([z.literal(0), z.literal(1)])

/**
 * Resources that one fleet has used under one load. CPU times are seconds for a million spans, of all processes of a kind; bytes
 * are of one span.
 */
export const measuredPointSchema = z.object({
  workers: positive,
  partitions: positive,
  shards: positive,
  /** Cores of the machine. */
  cores: positive,
  spansPerPayload: positive,
  /** Whether the spans are realistic, and the bodies gzip. */
  realistic: share,
  gzip: share,
  spansPerSecond: positive,
  /** Rows of a batch, over all shards. */
  rowsPerInsert: positive,
  edgeCpu: positive,
  workerCpu: positive,
  redisCpu: positive,
  clickhouseCpu: positive,
  /** CPU time of the load generator, which takes cores from the others. */
  generatorCpu: z.number().nonnegative(),
  /** A span's part of a request body, as it is sent. */
  bodyBytes: positive,
  redisReceivedBytes: positive,
  redisSentBytes: positive,
  clickhouseReceivedBytes: positive,
  /** Bytes of a span on the disk of ClickHouse, in all tables, after merges. */
  storedBytes: positive,
})
/** A measured point. */
export type MeasuredPoint = Readonly<z.infer<typeof measuredPointSchema>>

/** Fleet and load of a point. */
interface PointOf {
  readonly workers: number
  readonly partitions: number
  readonly shards: number
  readonly cores: number
  readonly load: PipelineLoad
}

/** Returns the medians of the rounds that succeeded. There must be one. */
export function figuresOf({ load, ...fleet }: PointOf, results: Results<PipelineMeasured>): MeasuredPoint {
  const rounds = succeeded(results)
  const median = (of: (round: PipelineMeasured) => number) => summarize(rounds.map(of)).median
  const cpu = (process: string) => median(({ use, records }) => ((use[process]?.cpuSeconds ?? 0) / records) * 1e6)
  const bytes = (counter: string) => median(({ counted, records }) => (counted[counter] ?? 0) / records)
  return {
    ...fleet,
    spansPerPayload: load.records,
    realistic: load.data === 'realistic' ? 1 : 0,
    gzip: load.gzip === 'all' ? 1 : 0,
    spansPerSecond: median(({ records, seconds }) => records / seconds),
    rowsPerInsert: median(({ rowsPerInsert }) => rowsPerInsert),
    edgeCpu: cpu('edge'),
    workerCpu: cpu('worker'),
    redisCpu: cpu('Redis'),
    clickhouseCpu: cpu('ClickHouse'),
    generatorCpu: median(({ load, records }) => ((load?.cpuSeconds ?? 0) / records) * 1e6),
    bodyBytes: median(sent => (sent.load?.bodyBytes ?? 0) / load.records),
    redisReceivedBytes: bytes('redisReceivedBytes'),
    redisSentBytes: bytes('redisSentBytes'),
    clickhouseReceivedBytes: bytes('clickhouseReceivedBytes'),
    storedBytes: median(({ storedBytes, records }) => storedBytes / records),
  }
}
