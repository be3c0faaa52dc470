import { ClickHouseError } from '@clickhouse/client'
import { type ClickHouseClient, type ClickHouseConnection, createClickHouse } from '../client.ts'
import type { Reads } from '../read-connection.ts'
import { clusterDatabase, SHARD_MAPS_QUERY, type ShardMap } from './shard-maps.ts'

const CHECK_TIMEOUT_MS = 2_000
/** How long a replica is avoided that has answered with one of the codes below. */
const AVOIDED_MS = 5_000
/**
 * Codes of a replica that cannot do what another one may be able to: NO_ZOOKEEPER, TABLE_IS_READ_ONLY, NOT_ENOUGH_SPACE and
 * KEEPER_EXCEPTION.
 */
const CODES_OF_REPLICA = new Set(['225', '242', '243', '999'])
/** UNKNOWN_TABLE and UNKNOWN_DATABASE: the server was never migrated. */
const NOT_MIGRATED = new Set(['60', '81'])

/** One server of a shard. */
export class Replica {
  /** Address without credentials. */
  readonly name: string
  /** Works on the tables of the shard. */
  readonly client: ClickHouseClient
  /** Reads all shards. */
  readonly allShards: Reads
  /** The maps that the server had when it was checked last. */
  maps: readonly ShardMap[] = []
  checkedAtMs = 0
  isUp = true
  /** Why the server is not the one that its address should lead to. */
  fault: string | undefined
  readonly #closeReads: () => Promise<void>
  readonly #shard: number
  #avoidedUntilMs = 0

  constructor(shard: number, connection: ClickHouseConnection & { readonly database: string }) {
    this.#shard = shard
    this.name = new URL(connection.url).host
    this.client = createClickHouse(connection)
    // Only its reads are used. Neither client connects before it is.
    const readers = createClickHouse({ ...connection, database: clusterDatabase(connection.database) })
    this.allShards = readers.reads
    this.#closeReads = () => readers.close()
  }

  /** Whether the next work should go here. */
  get isUsable(): boolean {
    return this.isUp && this.fault === undefined && Date.now() >= this.#avoidedUntilMs
  }

  /** Notes a failure of work, and returns whether the server is at fault rather than the work. */
  isAtFault(error: unknown): boolean {
    const code = codeOf(error)
    if (code === undefined) this.isUp = false
    else if (CODES_OF_REPLICA.has(code)) this.#avoidedUntilMs = Date.now() + AVOIDED_MS
    else return false
    return true
  }

  /** Asks the server for its maps. Never rejects. */
  async check(): Promise<void> {
    const chunks: Buffer[] = []
    try {
      const settings = { readonly: '2', output_format_json_quote_64bit_integers: 0 } as const
      const query = `${SHARD_MAPS_QUERY} FORMAT JSONEachRow`
      const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS)
      await this.client.reads.read({ query, params: {}, settings, signal }, chunk => chunks.push(chunk))
      const lines = Buffer.concat(chunks).toString().split('\n').filter(Boolean)
      this.#learn(lines.map(line => JSON.parse(line) as ShardMap))
    } catch (error) {
      const code = codeOf(error)
      this.isUp = code !== undefined
      if (code !== undefined && NOT_MIGRATED.has(code)) this.#learn([])
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.#closeReads()])
  }

  #learn(maps: readonly ShardMap[]): void {
    const other = maps.find(({ shard }) => shard !== this.#shard)
    this.fault =
      other &&
      `${this.name} is the shard ${other.shard + 1} of ClickHouse, but has the place of ${this.#shard + 1} in CLICKHOUSE_URL`
    this.maps = other === undefined ? maps : []
    this.checkedAtMs = Date.now()
    this.isUp = true
  }
}

/** Returns the code with which ClickHouse answered, or undefined if it did not. */
function codeOf(error: unknown): string | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) if (at instanceof ClickHouseError) return at.code
  return undefined
}
