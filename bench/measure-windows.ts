import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { createClickHouse } from '../clickhouse/client.ts'
import { migrate } from '../clickhouse/migrate/migrate.ts'
import { TABLE_SETTINGS } from '../clickhouse/migrate/table-settings.ts'
import { freePort } from '../deploy/local/ports.ts'
import { startClickHouse } from '../deploy/local/stores/clickhouse.ts'

/**
 * `node bench/measure-windows.ts [inserts per second]` prints what ClickHouse takes with all deduplication windows empty and
 * full: memory, disk and the time to start. The windows are filled by writing the logs that ClickHouse reads at its start.
 */
const insertsPerSecond = Number(process.argv[2] ?? TABLE_SETTINGS.insertsPerSecond)
const dir = await mkdtemp(join(tmpdir(), 'penstock-windows-'))
const options = { dir, port: await freePort(), password: 'measure', log: () => {} }

interface Started {
  readonly startMs: number
  readonly memoryMb: number
  readonly tables: readonly { name: string; path: string; window: number }[]
}

async function measure(prepare: boolean): Promise<Started> {
  const startedAt = performance.now()
  const server = await startClickHouse(options)
  const connection = { url: server.url, requestTimeoutMs: 120_000 }
  const client = createClickHouse(connection)
  const select = async <T>(query: string) => (await client.query({ query, format: 'JSONEachRow' })).json<T>()
  if (prepare) {
    const tableSettings = { ...TABLE_SETTINGS, insertsPerSecond }
    await migrate(client, { database: 'penstock', retentionDays: 30, tableSettings, logger: pino({ level: 'silent' }) })
  }
  const found = await select<{ name: string; path: string; engine: string }>(
    "SELECT name, data_paths[1] AS path, engine_full AS engine FROM system.tables WHERE database = 'penstock'",
  )
  const startMs = performance.now() - startedAt
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8')
  const memoryMb = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1_000
  const tables = found.map(({ name, path, engine }) => ({
    name,
    path,
    window: Number(/non_replicated_deduplication_window = (\d+)/.exec(engine)?.[1] ?? 0),
  }))
  await client.close()
  await server.stop()
  return { startMs, memoryMb, tables }
}

/** Writes a full log, as ClickHouse does: operation, part, block id. Returns its bytes. */
async function fill(path: string, window: number): Promise<number> {
  const lines: string[] = []
  for (let i = 1; i <= window; i++) {
    const hash = `${(i * 2_654_435_761) % 4_294_967_296}0000000000_${(i * 40_503) % 4_294_967_296}0000000000`
    lines.push(`1\t20261122_${i}_${i}_0\t20261122_${hash}`)
  }
  const log = Buffer.from(`${lines.join('\n')}\n`)
  await writeFile(join(path, 'deduplication_logs', 'deduplication_log_1.txt'), log)
  return log.length
}

try {
  const { tables } = await measure(true)
  const empty = await measure(false)
  let entries = 0
  let bytes = 0
  for (const { path, window } of tables.filter(table => table.window > 0)) {
    entries += window
    bytes += await fill(path, window)
  }
  const full = await measure(false)
  const perMillion = (value: number) => Math.round((value / entries) * 1e6)
  const memoryMb = full.memoryMb - empty.memoryMb
  process.stdout.write(
    `${insertsPerSecond} inserts per second and queue: ${entries} entries in ${tables.length} tables\n` +
      `memory ${Math.round(memoryMb)} MB more (${perMillion(memoryMb)} MB a million), ` +
      `disk ${Math.round(bytes / 1e6)} MB (${perMillion(bytes / 1e6)} MB a million), ` +
      `start ${Math.round(empty.startMs)} ms empty and ${Math.round(full.startMs)} ms full\n`,
  )
} finally {
  await rm(dir, { recursive: true, force: true })
}
