import { z } from 'zod'
import type { PipelineLoad, PipelineMeasured } from '../measure/measure-pipeline.ts'
import { summarize } from '../report/statistics.ts'
import { type Results, succeeded } from '../support/rounds.ts'

const positive = z.number().positive()
const share = z.union([z.literal(0), z.literal(1)])

/**
 * Resources that one edge and some workers have used under one load. CPU times are seconds for a million spans, of all
 * processes of a kind; bytes are of one span.
 */
export const measuredPointSchema = z.object({
  workers: positive,
  spansPerPayload: positive,
  /** Whether the spans are realistic, and the bodies gzip. */
  realistic: share,
  gzip: share,
  rowsPerInsert: positive,
  edgeCpu: positive,
  workerCpu: positive,
  redisCpu: positive,
  clickhouseCpu: positive,
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

/** Returns the medians of the rounds that succeeded. There must be one. */
export function figuresOf(workers: number, load: PipelineLoad, results: Results<PipelineMeasured>): MeasuredPoint {
  const rounds = succeeded(results)
  const median = (of: (round: PipelineMeasured) => number) => summarize(rounds.map(of)).median
  const cpu = (process: string) => median(({ use, records }) => ((use[process]?.cpuSeconds ?? 0) / records) * 1e6)
  const bytes = (counter: string) => median(({ counted, records }) => (counted[counter] ?? 0) / records)
  return {
    workers,
    spansPerPayload: load.records,
    realistic: load.data === 'realistic' ? 1 : 0,
    gzip: load.gzip === 'all' ? 1 : 0,
    rowsPerInsert: median(({ rowsPerInsert }) => rowsPerInsert),
    edgeCpu: cpu('edge'),
    workerCpu: cpu('worker'),
    redisCpu: cpu('Redis'),
    clickhouseCpu: cpu('ClickHouse'),
    bodyBytes: median(sent => (sent.load?.bodyBytes ?? 0) / load.records),
    redisReceivedBytes: bytes('redisReceivedBytes'),
    redisSentBytes: bytes('redisSentBytes'),
    clickhouseReceivedBytes: bytes('clickhouseReceivedBytes'),
    storedBytes: median(({ storedBytes, records }) => storedBytes / records),
  }
}
