import { insertNative } from '../clickhouse/client.ts'
import { onShardOfUnit, tableOfUnit } from '../clickhouse/cluster/shard-units.ts'
import { startClickHouseCluster } from '../test/support/cluster/clickhouse-cluster.ts'
import { connectDatabase, migrateDatabase } from '../test/support/cluster/connect.ts'
import { createSpansBatch } from '../workers/otlp/traces/spans.ts'
import type { TableBlock } from '../workers/sink/row-batch.ts'
import { shardBlocks } from '../workers/sink/shard-blocks.ts'
import { meterProcesses } from './measure/process-meter.ts'
import { tracePayload } from './payloads/trace-payload.ts'

/**
 * `node bench/measure-shards.ts [rounds]` inserts the same batches of 100,000 spans into one server and into two shards, in
 * turn, and prints spans per second, the CPU of ClickHouse and what dividing the rows costs a worker. Two batches are inserted
 * at the same time, as by the slots of a lane. All servers are on this machine: what two of them gain needs cores for both.
 */
const ROWS = 100_000
const BATCHES = 10
const AT_ONCE = 2
const rounds = Number(process.argv[2] ?? 3)

function formBlocks(): readonly TableBlock[] {
  const batch = createSpansBatch()
  for (let rows = 0; rows < ROWS; rows += 1_000) {
    const body = tracePayload({ spans: 1_000, spansPerTrace: 20, exceptionEvery: 100 })
    const frame = {
      workspaceId: 'ws_1',
      surfaceId: 'srf_1',
      receivedAtMs: Date.now(),
      contentType: 'application/x-protobuf',
      contentEncoding: 'identity',
      attributes: '',
      body,
    } as const
    const appended = batch.append(frame, body)
    if (!appended.ok) throw new Error(appended.reason)
  }
  return batch.tables()
}

async function measure(shards: number, blocks: readonly TableBlock[]): Promise<string> {
  const cluster = await startClickHouseCluster({ shards })
  try {
    await migrateDatabase(cluster.url, 'penstock')
    const client = connectDatabase(cluster.url, 'penstock')
    const meter = meterProcesses(Object.fromEntries(cluster.shards.map(({ pid }) => [`shard ${pid}`, pid])))
    meter.begin()
    const [own, startedAt] = [process.cpuUsage(), performance.now()]
    let next = 0
    const slot = async () => {
      while (next < BATCHES) {
        const id = `batch ${next++}`
        for (const { table: unit, columns, block } of shardBlocks(blocks, shards, id)) {
          const insert = {
            table: tableOfUnit(unit),
            columns,
            block,
            deduplicationToken: `${id}:${unit}`,
            timeoutMs: 60_000,
          }
          await onShardOfUnit(client, unit, shard => insertNative(shard, insert))
        }
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, slot))
    const seconds = (performance.now() - startedAt) / 1_000
    const { user, system } = process.cpuUsage(own)
    const used = Object.values(meter.end()).reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
    await client.close()
    const millions = (ROWS * BATCHES) / 1e6
    return (
      `${shards} shard${shards === 1 ? ' ' : 's'}: ${Math.round((ROWS * BATCHES) / seconds)} spans/s, CPU s a million: ` +
      `ClickHouse ${(used / millions).toFixed(2)}, worker ${((user + system) / 1e6 / millions).toFixed(2)}`
    )
  } finally {
    await cluster.stop()
  }
}

const blocks = formBlocks()
for (let round = 0; round < rounds; round++) {
  for (const shards of round % 2 === 0 ? [1, 2] : [2, 1]) process.stdout.write(`${await measure(shards, blocks)}\n`)
}
