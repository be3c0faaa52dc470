import type { NamedPoint } from './costs.ts'

/** Measured points for tests, with round figures: an insert costs 40 CPU ms in ClickHouse and 10 in the worker. */
const BASE: NamedPoint = {
  name: '1 of each',
  workers: 1,
  spansPerPayload: 200,
  realistic: 0,
  gzip: 0,
  rowsPerInsert: 80_000,
  edgeCpu: 0.5,
  workerCpu: 1.625,
  redisCpu: 1.5,
  clickhouseCpu: 2.5,
  bodyBytes: 370,
  redisReceivedBytes: 400,
  redisSentBytes: 390,
  clickhouseReceivedBytes: 410,
  storedBytes: 25,
}

/** Returns a point that differs from one of each. */
export const point = (different: Partial<NamedPoint>): NamedPoint => ({ ...BASE, ...different })

/** Points that follow the model exactly. */
export const measuredPoints: readonly NamedPoint[] = [
  BASE,
  point({
    name: '1 span',
    spansPerPayload: 1,
    edgeCpu: 20,
    redisCpu: 16,
    workerCpu: 12,
    clickhouseCpu: 6,
    rowsPerInsert: 10_000,
    bodyBytes: 840,
  }),
  point({
    name: '20 spans',
    spansPerPayload: 20,
    edgeCpu: 1.4,
    redisCpu: 2,
    workerCpu: 2.2,
    clickhouseCpu: 2.8,
    bodyBytes: 390,
  }),
  point({
    name: 'realistic',
    realistic: 1,
    rowsPerInsert: 50_000,
    edgeCpu: 0.8,
    redisCpu: 2,
    workerCpu: 3.2,
    clickhouseCpu: 4.8,
    storedBytes: 80,
  }),
  point({
    name: 'gzip',
    realistic: 1,
    gzip: 1,
    rowsPerInsert: 50_000,
    edgeCpu: 0.4,
    redisCpu: 0.8,
    workerCpu: 4.2,
    clickhouseCpu: 4.8,
    bodyBytes: 90,
    redisReceivedBytes: 100,
    redisSentBytes: 95,
    storedBytes: 80,
  }),
  point({
    name: '2 workers',
    workers: 2,
    rowsPerInsert: 40_000,
    workerCpu: 1.75,
    clickhouseCpu: 3,
  }),
  point({
    name: '4 workers',
    workers: 4,
    rowsPerInsert: 20_000,
    workerCpu: 2,
    clickhouseCpu: 4,
  }),
]
