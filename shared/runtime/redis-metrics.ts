import { setTimeout as delay } from 'node:timers/promises'
import type { Metrics } from './metrics.ts'
import { shareReads } from './shared-read.ts'

/** The part of a connection that is used here. */
interface Informant {
  readonly status: string
  info(section: string): Promise<string>
}

/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000
/** Metrics that are collected together share one read. */
const KEEP_MS = 500
const SECTIONS = ['memory', 'persistence', 'replication', 'stats'] as const

/** Value of a field of INFO as a number, and the text that counts as 1 where the field is not a number. */
interface Field {
  readonly metric: string
  readonly help: string
  readonly field: string
  readonly truth?: string
  /** Units of the field in one unit of the metric. */
  readonly divisor?: number
}

const FIELDS: readonly Field[] = [
  { metric: 'memory_bytes', help: 'Memory in use.', field: 'used_memory' },
  { metric: 'memory_limit_bytes', help: 'Limit of the memory (maxmemory). 0 means none.', field: 'maxmemory' },
  { metric: 'aof_enabled', help: '1 if writes go to the append-only file.', field: 'aof_enabled' },
  {
    metric: 'aof_write_ok',
    help: '1 if the last write to the append-only file succeeded.',
    field: 'aof_last_write_status',
    truth: 'ok',
  },
  {
    metric: 'aof_rewrite_ok',
    help: '1 if the last rewrite of the append-only file succeeded.',
    field: 'aof_last_bgrewrite_status',
    truth: 'ok',
  },
  { metric: 'aof_bytes', help: 'Size of the append-only file.', field: 'aof_current_size' },
  {
    metric: 'fork_seconds',
    help: 'Duration of the last fork, which a rewrite of the append-only file begins with. Redis does nothing else meanwhile.',
    field: 'latest_fork_usec',
    divisor: 1_000_000,
  },
  { metric: 'replicas', help: 'Replicas that are connected.', field: 'connected_slaves' },
  { metric: 'is_master', help: '1 if this server accepts writes as a master.', field: 'role', truth: 'master' },
  {
    metric: 'evicted_keys',
    help: 'Keys that were removed because the memory was full, since the start of the server.',
    field: 'evicted_keys',
  },
]

/**
 * Shows the state of each Redis, by the name of what it stores. Read when metrics are collected: four INFO, of a tenth of a
 * millisecond each. While a Redis does not answer, it has `penstock_redis_up` 0 and no other series.
 */
export function watchRedis(metrics: Metrics, stores: Readonly<Record<string, Informant>>): void {
  const read = shareReads(KEEP_MS, async () => {
    const infos = Object.entries(stores).map(async ([store, redis]) => [store, await readInfo(redis)] as const)
    return Promise.all(infos)
  })
  const labelNames = ['store'] as const
  metrics.gauge({
    name: 'penstock_redis_up',
    help: '1 if Redis answers.',
    labelNames,
    async collect() {
      for (const [store, info] of await read()) this.set({ store }, info === undefined ? 0 : 1)
    },
  })
  for (const field of FIELDS) {
    metrics.gauge({
      name: `penstock_redis_${field.metric}`,
      help: field.help,
      labelNames,
      async collect() {
        const infos = await read()
        this.reset()
        for (const [store, info] of infos) {
          const value = info === undefined ? undefined : numberOf(info, field)
          if (value !== undefined) this.set({ store }, value)
        }
      },
    })
  }
}

async function readInfo(redis: Informant): Promise<string | undefined> {
  if (redis.status !== 'ready') return undefined
  const read = Promise.all(SECTIONS.map(section => redis.info(section))).then(
    texts => texts.join('\n'),
    () => undefined,
  )
  return Promise.race([read, delay(READ_TIMEOUT_MS, undefined, { ref: false })])
}

function numberOf(info: string, { field, truth, divisor = 1 }: Field): number | undefined {
  const text = new RegExp(`^${field}:(\\S+)`, 'm').exec(info)?.[1]
  if (text === undefined) return undefined
  return truth === undefined ? Number(text) / divisor : Number(text === truth)
}
