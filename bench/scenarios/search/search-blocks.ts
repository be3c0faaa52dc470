import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLogsBatch } from '../../../workers/otlp/logs/logs.ts'
import { createMetricsBatch } from '../../../workers/otlp/metrics/metrics.ts'
import type { OtlpBatch } from '../../../workers/otlp/protobuf/otlp-batch.ts'
import { createSpansBatch } from '../../../workers/otlp/traces/spans.ts'
import { logPayload } from '../../payloads/log-payload.ts'
import { metricsPayload } from '../../payloads/metrics-payload.ts'
import { realisticTracePayload } from '../../payloads/realistic-trace-payload.ts'

/** Tables that are searched. */
export type SearchedTable = 'spans' | 'logs' | 'metric_points'

/** Rows of a block, as in the batches of a worker. */
export const BLOCK_ROWS = 100_000
/** Workspace of all rows. */
export const SEARCHED_WORKSPACE = 'ws_search'
const RECORDS = 200
const SERVICES = 8
/** Each instance sends every series once a minute. */
const INSTANCES = 64
const MINUTE_NS = 60_000_000_000n

interface Source {
  readonly batch: OtlpBatch
  payload(number: number): Buffer
}

const SOURCES: Record<SearchedTable, (beganAt: bigint) => Source> = {
  spans: () => ({ batch: createSpansBatch(), payload: number => realisticTracePayload(RECORDS, number) }),
  logs: () => ({
    batch: createLogsBatch(),
    payload: number => logPayload({ records: RECORDS, exceptionEvery: 0, service: `shop-${number % SERVICES}` }),
  }),
  metric_points: beganAt => ({
    batch: createMetricsBatch(),
    payload: number =>
      metricsPayload({
        points: RECORDS,
        pointsPerMetric: 10,
        service: `shop-${number % SERVICES}`,
        instance: `shop-${number % INSTANCES}`,
        timeUnixNano: beganAt + BigInt(Math.floor(number / INSTANCES)) * MINUTE_NS,
      }),
  }),
}

/** Writes the rows of different payloads as the blocks that a worker would send, and returns the paths of the files. */
export async function writeSearchBlocks(
  dir: string,
  table: SearchedTable,
  blocks: number,
  beganAt: bigint,
): Promise<string[]> {
  await mkdir(dir, { recursive: true })
  const { batch, payload } = SOURCES[table](beganAt)
  const paths: string[] = []
  let number = 0
  for (let i = 0; i < blocks; i++) {
    while (batch.rows < BLOCK_ROWS) {
      const source = {
        workspaceId: SEARCHED_WORKSPACE,
        surfaceId: `srf_${number % SERVICES}`,
        receivedAtMs: Date.now(),
      }
      const result = batch.append(source, payload(number++))
      if (!result.ok) throw new Error(`a payload of the bench was refused: ${result.reason}`)
    }
    const block = batch.tables().find(block => block.table === table)
    if (!block) throw new Error(`no block for the table ${table}`)
    const path = join(dir, `${table}-${i}.native`)
    await writeFile(path, Buffer.concat(block.block))
    paths.push(path)
    batch.reset()
  }
  return paths
}
