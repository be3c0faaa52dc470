import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { migrate } from '../../clickhouse/migrate/migrate.ts'
import { freePort } from '../../deploy/local/ports.ts'
import { startClickHouse } from '../../deploy/local/stores/clickhouse.ts'
import { startRedis } from '../../deploy/local/stores/redis.ts'
import { untilDiskQuiet } from '../machine/disk.ts'
import { pollUntil } from '../support/poll-until.ts'
import type { ScenarioContext } from '../support/scenario.ts'

/** Password of the stores, in their URLs. */
const STORE_PASSWORD = 'bench-password'

/** A running Redis. */
export interface BenchRedis {
  readonly pid: number
  readonly version: string
  /** Returns the address of a database. Each contender has its own. */
  url(database: number): string
  /** Empties a database except keys of these patterns, and rewrites the log. */
  empty(database: number, keep?: readonly string[]): Promise<void>
  /**
   * Rewrites the log, so that no rewrite happens in the next round, and waits until the disk is quiet again: the old log is
   * deleted after the rewrite has ended, which stops fsync meanwhile.
   */
  rewriteLog(): Promise<void>
  /** Returns the bytes that it has received and sent since it started. */
  networkBytes(): Promise<{ received: number; sent: number }>
}

/**
 * Starts Redis as in production: every acknowledged write is on disk. With `ownRewrites` it decides when to rewrite its
 * log.
 */
export async function startBenchRedis(
  context: ScenarioContext,
  options: { ownRewrites: boolean; maxMemory?: string },
): Promise<BenchRedis> {
  const service = await startRedis({
    dir: join(context.dir, 'redis'),
    port: await freePort(),
    password: STORE_PASSWORD,
    maxMemory: options.maxMemory ?? '8gb',
    log: () => {},
  })
  context.onEnd(() => service.stop())
  const { stdout } = await promisify(execFile)('redis-server', ['--version'])
  const admin = new Redis(service.url)
  context.onEnd(() => admin.disconnect())
  if (!options.ownRewrites) await admin.config('SET', 'auto-aof-rewrite-percentage', '0')

  async function rewriteLog(): Promise<void> {
    await admin.bgrewriteaof()
    await pollUntil('the log of Redis is rewritten', 60_000, async () => {
      const info = await admin.info('persistence')
      return info.includes('aof_rewrite_in_progress:0') && info.includes('aof_rewrite_scheduled:0')
    })
    await untilDiskQuiet(context.dir)
  }

  return {
    pid: service.pid,
    version: /v=(\S+)/.exec(stdout)?.[1] ?? 'unknown',
    url: database => `${service.url}/${database}`,
    async empty(database, keep = []) {
      const redis = new Redis(`${service.url}/${database}`)
      try {
        const kept = new Map<string, Buffer | null>()
        for (const pattern of keep) {
          for (const key of await redis.keys(pattern)) kept.set(key, await redis.dumpBuffer(key))
        }
        await redis.flushdb('SYNC')
        for (const [key, value] of kept) if (value) await redis.restore(key, 0, value, 'REPLACE')
      } finally {
        redis.disconnect()
      }
      await rewriteLog()
    },
    rewriteLog,
    async networkBytes() {
      const info = await admin.info('stats')
      const counted = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
      return { received: counted('total_net_input_bytes'), sent: counted('total_net_output_bytes') }
    },
  }
}

/** A running ClickHouse with a client. */
export interface BenchClickHouse {
  readonly pid: number
  readonly version: string
  readonly url: string
  readonly client: ClickHouseClient
}

/** Database of the product's tables. */
export const BENCH_DATABASE = 'penstock'

/** Starts ClickHouse with the schema of this checkout, empty. */
export async function startBenchClickHouse(context: ScenarioContext): Promise<BenchClickHouse> {
  const service = await startClickHouse({
    dir: join(context.dir, 'clickhouse'),
    port: await freePort(),
    password: STORE_PASSWORD,
    log: () => {},
  })
  context.onEnd(() => service.stop())
  const migrator = createClickHouse({ url: service.url })
  try {
    await migrate(migrator, { database: BENCH_DATABASE, retentionDays: 30, logger: pino({ level: 'silent' }) })
  } finally {
    await migrator.close()
  }
  const client = createClickHouse({ url: service.url, database: BENCH_DATABASE })
  context.onEnd(() => client.close())
  const [row] = await (await client.query({ query: 'SELECT version() AS version', format: 'JSONEachRow' })).json<{
    version: string
  }>()
  return { pid: service.pid, version: row?.version ?? 'unknown', url: service.url, client }
}
