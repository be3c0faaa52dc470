import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { constants, createZstdCompress } from 'node:zlib'
import {
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
  type ClickHouseClient as OfficialClient,
} from '@clickhouse/client'
import { KIB } from '../schemas/units.ts'
import { errorMessage, PermanentError, TransientError } from '../shared/runtime/errors.ts'
import { quoteIdentifier } from './quote.ts'
import { ReadConnection, type Reads } from './read-connection.ts'

/**
 * The official client, for inserts, changes and deletions, with connections of its own for reads (`select.ts`). That of a
 * cluster has `shards`: its reads are of all of them, and it refuses everything else, which concerns single shards.
 */
export type ClickHouseClient = OfficialClient & {
  readonly reads: Reads
  readonly shards?: Shards
  /** Whether inserts are compressed on their way. */
  readonly compressesInserts?: boolean
  /** Tables that take no inserts for now, with the reason (`SchemaWatch`). */
  readonly held?: ReadonlyMap<string, string>
}

/** The shards of a cluster, numbered from 0 in the order of their addresses. */
export interface Shards {
  /** Number of shards with an address. */
  readonly count: number
  /** Database of the tables on each shard. Reads of all shards have another one. */
  readonly database: string
  /** Returns the number of shards that rows of new batches are divided between. Smaller than `count` while shards are added. */
  active(): Promise<number>
  /**
   * Runs work with a replica of a shard that answers. If it does not answer then, work runs once more with another replica, so
   * that it must be safe to repeat.
   */
  onShard<T>(shard: number, work: (client: ClickHouseClient) => Promise<T>): Promise<T>
  /** All servers, whether they answer or not. */
  readonly servers: readonly ShardServer[]
  /** Why the servers cannot be the cluster of this process, or undefined. */
  readonly fault: string | undefined
}

/** One server, or one of a cluster. */
export interface ShardServer {
  /** Address without credentials; undefined without a cluster. */
  readonly name?: string
  readonly client: ClickHouseClient
}

/** Returns all servers: those of a cluster, or the only one. */
export function serversOf(client: ClickHouseClient): readonly ShardServer[] {
  return client.shards?.servers ?? [{ client }]
}

/** Runs work on each shard in turn, or once without a cluster, and returns the results. */
export async function onEachShard<T>(
  client: ClickHouseClient,
  work: (shard: ClickHouseClient, number: number) => Promise<T>,
): Promise<T[]> {
  const { shards } = client
  if (shards === undefined) return [await work(client, 0)]
  const results: T[] = []
  for (let number = 0; number < shards.count; number++) {
    results.push(await shards.onShard(number, shard => work(shard, number)))
  }
  return results
}

/** Runs work on the first shard, or without a cluster on the server. For tables whose rows are too few to be divided. */
export function onFirstShard<T>(client: ClickHouseClient, work: (shard: ClickHouseClient) => Promise<T>): Promise<T> {
  return client.shards === undefined ? work(client) : client.shards.onShard(0, work)
}

/** How to reach ClickHouse. */
export interface ClickHouseConnection {
  /** User and password in the URL count instead of `user` and `password`. */
  readonly url: string
  /** `default` if left out. */
  readonly user?: string
  readonly password?: string
  /** `default` if left out. Migrations connect without a database, because it may not exist yet. */
  readonly database?: string
  /**
   * How long a connection of the official client may stay silent. The deadlines of single calls are shorter. Reads have only
   * theirs.
   */
  readonly requestTimeoutMs?: number
  readonly maxConnections?: number
  /** Settings of every query, unless the query has its own. */
  readonly settings?: ClickHouseSettings
  /** Tables that take no inserts while they have a reason here. */
  readonly held?: ReadonlyMap<string, string>
}

/** Creates the clients with keep-alive. They log nothing, because their callers classify and log their errors. */
export function createClickHouse(connection: ClickHouseConnection): ClickHouseClient {
  const { maxConnections = 10, settings = {} } = connection
  const url = new URL(connection.url)
  const user = decodeURIComponent(url.username) || (connection.user ?? 'default')
  const password = decodeURIComponent(url.password) || (connection.password ?? '')
  const database = connection.database ?? (url.pathname.slice(1) || undefined)
  // The official client prints a warning about what the URL has too.
  url.username = url.password = url.pathname = ''
  const client = createClient({
    url,
    username: user,
    password,
    application: 'penstock',
    ...(database === undefined ? {} : { database }),
    request_timeout: connection.requestTimeoutMs ?? 60_000,
    max_open_connections: maxConnections,
    clickhouse_settings: settings,
    // The client drops an idle socket before the server does, even when a busy event loop delays its timers.
    keep_alive: { enabled: true, idle_socket_ttl: 2_500, eagerly_destroy_stale_sockets: true },
    log: { level: ClickHouseLogLevel.OFF },
  })
  const reads = new ReadConnection({ url: url.href, user, password, database, maxConnections, settings })
  const closeClient = client.close.bind(client)
  const close = () => {
    reads.close()
    return closeClient()
  }
  const { held = new Map() } = connection
  return Object.assign(client, { reads, close, held, compressesInserts: !isLoopback(url) })
}

/**
 * Returns whether a server is on this machine, where bytes cost less than compressing them. A million realistic spans have 55 MB
 * instead of 507, for 0.67 CPU s of this process, of which 0.2 on its event loop, and 0.1 of the server.
 */
function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname)
}

/** zstd. Negative levels are hardly faster, and their result is a quarter to three quarters larger. */
const COMPRESSION_LEVEL = 1
/** Each chunk costs the event loop a turn: of a million spans, 0.23 CPU s more with the 16 KiB that are usual. */
const COMPRESSED_CHUNK_BYTES = 128 * KIB

/** An insert of one Native block. */
interface NativeInsert {
  readonly table: string
  /** With names, an unknown column is a TransientError (migrate first). Without, it is an error of the block. */
  readonly columns?: readonly string[]
  /** One Native block in one or more pieces. They must not change until the promise settles. */
  readonly block: readonly Uint8Array[]
  /** A repeated insert with the same token and the same block adds nothing. */
  readonly deduplicationToken: string
  readonly timeoutMs: number
  /** Ends the wait earlier. As after a timeout, the block may be stored or not. */
  readonly signal?: AbortSignal
}

/**
 * Inserts one block and resolves when ClickHouse has confirmed it. Throws the result of `classifyClickHouseError`, or a
 * TransientError while the table takes no inserts.
 * After a TransientError the block may be stored or not: repeat the insert with the same token. Measured with 33 MB in
 * 100,000 rows of two constant strings: 22 to 40 ms, of which this process uses 7 ms of CPU (`fetch` with one buffer:
 * 160 ms).
 */
export async function insertNative(client: ClickHouseClient, insert: NativeInsert): Promise<void> {
  const reason = client.held?.get(insert.table)
  if (reason !== undefined) throw new TransientError(reason)
  const columns = insert.columns === undefined ? '' : ` (${insert.columns.map(quoteIdentifier).join(', ')})`
  const deadline = AbortSignal.any([AbortSignal.timeout(insert.timeoutMs), ...(insert.signal ? [insert.signal] : [])])
  try {
    const { stream } = await client.exec({
      query: `INSERT INTO ${quoteIdentifier(insert.table)}${columns} FORMAT Native`,
      values: client.compressesInserts ? compressed(insert.block) : streamOf(insert.block),
      http_headers: client.compressesInserts ? { 'Content-Encoding': 'zstd' } : {},
      abort_signal: deadline,
      clickhouse_settings: {
        insert_deduplicate: 1,
        insert_deduplication_token: insert.deduplicationToken,
        deduplicate_blocks_in_dependent_materialized_views: 1,
        async_insert: 0,
        // Without this the 200 is sent before the block is written, and a later error would look like success.
        wait_end_of_query: 1,
        // By default a column that the table lacks is dropped silently.
        input_format_skip_unknown_fields: 0,
        // The first merge builds these indexes. Tables without them ignore the setting.
        exclude_materialize_skip_indexes_on_insert: 'by_attribute, logs_by_token',
      },
    })
    stream.resume()
    await finished(stream, { signal: deadline, writable: false }).catch(error => {
      stream.destroy()
      throw error
    })
  } catch (error) {
    throw deadline.aborted
      ? new TransientError(`ClickHouse did not confirm the insert within ${insert.timeoutMs} ms`, { cause: error })
      : classifyClickHouseError(error)
  }
}

const streamOf = (block: readonly Uint8Array[]) => Readable.from(block, { objectMode: false })

/**
 * Returns a block as one frame of zstd, which threads of zlib compress while it is sent. A repeated insert compresses it again:
 * that costs less than keeping it, because it follows a pause.
 */
function compressed(block: readonly Uint8Array[]): Readable {
  const params = { [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL }
  return streamOf(block).pipe(createZstdCompress({ chunkSize: COMPRESSED_CHUNK_BYTES, params }))
}

/**
 * Error codes that the inserted bytes can cause (ErrorCodes.cpp of ClickHouse). All other codes depend on the state of
 * the server, the network or the schema, and are transient. TYPE_MISMATCH (53), CANNOT_CONVERT_TYPE (70), UNKNOWN_TABLE
 * (60) and NO_SUCH_COLUMN_IN_TABLE (16) also refuse the block but are not in this list. Native blocks carry the column
 * types of the encoder, so these codes mean that worker and schema have different versions. As permanent errors they
 * would dead-letter every payload.
 */
const CONTENT_FAULTS = new Set([
  6, // CANNOT_PARSE_TEXT
  9, // SIZES_OF_COLUMNS_DOESNT_MATCH
  25, // CANNOT_PARSE_ESCAPE_SEQUENCE
  26, // CANNOT_PARSE_QUOTED_STRING
  27, // CANNOT_PARSE_INPUT_ASSERTION_FAILED
  32, // ATTEMPT_TO_READ_AFTER_EOF
  33, // CANNOT_READ_ALL_DATA
  38, // CANNOT_PARSE_DATE
  41, // CANNOT_PARSE_DATETIME
  69, // ARGUMENT_OUT_OF_BOUND
  72, // CANNOT_PARSE_NUMBER
  117, // INCORRECT_DATA
  128, // TOO_LARGE_ARRAY_SIZE
  131, // TOO_LARGE_STRING_SIZE
  190, // SIZES_OF_ARRAYS_DONT_MATCH
  321, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
  349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
  376, // CANNOT_PARSE_UUID
  407, // DECIMAL_OVERFLOW
  467, // CANNOT_PARSE_BOOL
  469, // VIOLATED_CONSTRAINT
  675, // CANNOT_PARSE_IPV4
  676, // CANNOT_PARSE_IPV6
])

/** UNKNOWN_TABLE, NO_SUCH_COLUMN_IN_TABLE and UNKNOWN_DATABASE, whose texts have names of the schema and no values. */
const NAMING = new Set(['60', '16', '81'])

/**
 * Classifies an error by ClickHouse's code: permanent if the inserted bytes cause it, else transient. The message has the
 * code alone, because ClickHouse's text may quote values of a request (`clickHouseText`). Only if something of the schema is
 * missing, it has the sentence that names it: an insert into a table also fails for the target of a view.
 */
export function classifyClickHouseError(error: unknown): PermanentError | TransientError {
  if (error instanceof PermanentError || error instanceof TransientError) return error
  if (error instanceof ClickHouseError) {
    const named = NAMING.has(error.code) ? `: ${error.message.split('. ', 1)[0]?.slice(0, 200)}` : ''
    const message = `ClickHouse ${error.code} ${error.type ?? ''}`.trimEnd() + named
    const Kind = CONTENT_FAULTS.has(Number(error.code)) ? PermanentError : TransientError
    return new Kind(message, { cause: error })
  }
  return new TransientError(`the request to ClickHouse failed: ${errorMessage(error).slice(0, 500)}`, { cause: error })
}

/** Returns the code with which ClickHouse answered, as text, or undefined if it did not answer. */
export function clickHouseCode(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof ClickHouseError ? cause.code : undefined
}

/** Returns ClickHouse's own text of a classified error. It may quote values, so it must not be logged above `debug`. */
export function clickHouseText(error: unknown): string | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if (at instanceof ClickHouseError) return at.message.slice(0, 500)
  }
  return undefined
}

/** Codes of ClickHouse for queries over one of their limits. */
export const OVER_LIMIT_CODES = {
  /** It would read more rows than `max_rows_to_read`. */
  rowsRead: 158,
  /** It would read more bytes than `max_bytes_to_read`. */
  bytesRead: 307,
  memory: 241,
  /** Its result has more rows or bytes than it may. */
  result: 396,
} as const

/** Returns whether a classified error is that of a query which would read more rows or bytes than it may. */
export function readsTooMuch(error: unknown): boolean {
  return isClickHouseCode(error, OVER_LIMIT_CODES.rowsRead) || isClickHouseCode(error, OVER_LIMIT_CODES.bytesRead)
}

/** Returns whether ClickHouse raised a classified error with this code. */
export function isClickHouseCode(error: unknown, code: number): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof ClickHouseError && Number(cause.code) === code
}
