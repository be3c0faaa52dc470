import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { createClickHouse, insertNative } from '../clickhouse/client.ts'
import { migrate } from '../clickhouse/migrate/migrate.ts'
import { TABLE_SETTINGS } from '../clickhouse/migrate/table-settings.ts'
import { freePort } from '../deploy/local/ports.ts'
import { startClickHouse } from '../deploy/local/stores/clickhouse.ts'
import { createLogsBatch } from '../workers/otlp/logs/logs.ts'
import { meterProcesses } from './measure/process-meter.ts'
import { logPayload } from './payloads/log-payload.ts'

/**
 * `node bench/measure-fsync.ts [directory]` inserts batches of logs with and without fsync, in turn, and prints inserts per
 * second, CPU of ClickHouse and the slowest inserts. The directory decides which disk is measured. A small batch is what a
 * worker with little traffic inserts, four times a second; a large one is what it inserts at its limit.
 */
const parent = process.argv[2] ?? tmpdir()
const dir = await mkdtemp(join(parent, 'penstock-fsync-'))
const server = await startClickHouse({ dir, port: await freePort(), password: 'measure', log: () => {} })
const admin = createClickHouse({ url: server.url })
const meter = meterProcesses({ ClickHouse: server.pid })

async function measure(fsync: boolean, rows: number, inserts: number): Promise<string> {
  const database = `measure_${fsync ? 'on' : 'off'}`
  await migrate(admin, {
    database,
    retentionDays: 30,
    tableSettings: { ...TABLE_SETTINGS, fsync },
    logger: pino({ level: 'silent' }),
  })
  const client = createClickHouse({ url: server.url, database })
  const batch = createLogsBatch()
  const body = logPayload({ records: 100, exceptionEvery: 0 })
  const frame = {
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    receivedAtMs: Date.now(),
    contentType: 'application/x-protobuf',
    contentEncoding: 'identity',
    attributes: '',
    body,
  } as const
  for (let i = 0; i < rows; i += 100) batch.append(frame, body)
  const [block] = batch.tables()
  if (block === undefined) throw new Error('the batch is empty')
  const times: number[] = []
  meter.begin()
  const startedAt = performance.now()
  for (let i = 0; i < inserts; i++) {
    const at = performance.now()
    await insertNative(client, { ...block, deduplicationToken: `${Date.now()}:${i}`, timeoutMs: 60_000 })
    times.push(performance.now() - at)
  }
  const seconds = (performance.now() - startedAt) / 1_000
  const used = meter.end().ClickHouse?.cpuSeconds ?? 0
  await client.close()
  times.sort((a, b) => a - b)
  const at = (share: number) => (times[Math.floor((times.length - 1) * share)] as number).toFixed(1)
  return (
    `fsync ${fsync ? 'on ' : 'off'} ${rows} rows: ${(inserts / seconds).toFixed(1)} inserts/s, ` +
    `${((used / inserts) * 1_000).toFixed(1)} ms CPU an insert with its merges, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`
  )
}

try {
  for (const [rows, inserts] of [
    [500, 200],
    [100_000, 20],
  ] as const) {
    for (const fsync of [false, true, true, false]) process.stdout.write(`${await measure(fsync, rows, inserts)}\n`)
  }
} finally {
  await admin.close()
  await server.stop()
  await rm(dir, { recursive: true, force: true })
}
