import { type ClickHouseClient, clickHouseCode } from '../clickhouse/client.ts'
import { selectRows } from '../clickhouse/select.ts'
import type { PoolName, QueueName } from '../schemas/queues/names.ts'
import { refusalStatus } from '../shared/object-store/errors.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'

/** Stores that the pools of a process use. */
interface AccessedStores {
  readonly clickhouse: ClickHouseClient
  /** Undefined if no pool of the process uses it. */
  readonly objects: Pick<ObjectStore, 'head'> | undefined
}

/** Pools that read or write objects. */
const OBJECT_QUEUES: readonly PoolName[] = ['replay', 'source-maps', 'completions', 'symbolication', 'dead-letters']

/** Returns the stores that the pool of a queue writes to or reads, besides both Redis. */
export function storesOf(queue: QueueName): readonly ('clickhouse' | 'bucket')[] {
  if (queue === 'symbolication') return ['clickhouse', 'bucket']
  return OBJECT_QUEUES.includes(queue) ? ['bucket'] : ['clickhouse']
}

/** Returns whether one of these pools uses the object store. */
export function usesObjects(queues: readonly PoolName[]): boolean {
  return queues.some(queue => OBJECT_QUEUES.includes(queue))
}

const CHECK_EVERY_MS = 5_000
const CHECK_TIMEOUT_MS = 5_000

/** Codes of ClickHouse for a wrong user, password or database: UNKNOWN_DATABASE, UNKNOWN_USER, WRONG_PASSWORD, … */
const REFUSED = new Set(['81', '192', '193', '194', '497', '516'])

/** Any key: the check is for the bucket and the credentials. */
const CHECKED_KEY = 'no-such-object'

/**
 * Finds out at the start whether the stores accept the settings of this process, so that a new version with a wrong password
 * or bucket is not ready and does not replace the workers that work. A store that is only unavailable counts as no refusal: its
 * jobs wait, and a restart would not help. Once both have answered without a refusal, nothing is checked any more.
 */
export class StoreAccess {
  readonly #stores: AccessedStores
  readonly #timer: NodeJS.Timeout
  readonly #faults = new Map<string, string>()
  readonly #accepted = new Set<string>()
  #checking: Promise<void> | undefined

  constructor(stores: AccessedStores) {
    this.#stores = stores
    this.#timer = setInterval(() => void this.check(), CHECK_EVERY_MS).unref()
    void this.check()
  }

  /** Why a store refuses this process, or undefined. */
  get fault(): string | undefined {
    return this.#faults.values().next().value
  }

  /** Asks the stores that have not answered yet, or have refused. Calls during a check share it. */
  check(): Promise<void> {
    this.#checking ??= this.#checkAll().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #checkAll(): Promise<void> {
    await Promise.all([this.#checkOne('clickhouse', askClickHouse), this.#checkOne('the object store', askObjects)])
    if (this.#accepted.size === 2) this.stop()
  }

  async #checkOne(name: string, ask: (stores: AccessedStores) => Promise<string | undefined>): Promise<void> {
    if (this.#accepted.has(name)) return
    const fault = await ask(this.#stores).catch(() => 'unavailable')
    if (fault === undefined) this.#accepted.add(name)
    if (fault === undefined || fault === 'unavailable') this.#faults.delete(name)
    else this.#faults.set(name, `${name} ${fault}`)
  }
}

async function askClickHouse({ clickhouse }: AccessedStores): Promise<string | undefined> {
  try {
    await clickhouse.shards?.active().catch(error => {
      if (clickhouse.shards?.fault === undefined) throw error
    })
    if (clickhouse.shards?.fault !== undefined) return `is another cluster: ${clickhouse.shards.fault}`
    await selectRows(clickhouse, { query: 'SELECT 1', params: {}, signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) })
    return undefined
  } catch (error) {
    const code = clickHouseCode(error)
    if (code === undefined || !REFUSED.has(code)) throw error
    return `refuses the user, the password or the database (code ${code})`
  }
}

async function askObjects({ objects }: AccessedStores): Promise<string | undefined> {
  try {
    await objects?.head(CHECKED_KEY)
    return undefined
  } catch (error) {
    const status = refusalStatus(error instanceof Error ? error.cause : undefined)
    if (status === 401 || status === 403 || status === 404)
      return `refuses the credentials or the bucket (status ${status})`
    throw error
  }
}
