import type { ClickHouseSettings } from '@clickhouse/client'
import { MIB } from '../schemas/units.ts'
import { TransientError } from '../shared/runtime/errors.ts'
import { type ClickHouseClient, classifyClickHouseError } from './client.ts'
import type { TraceKey } from './read-connection.ts'

/** A read of ClickHouse. */
export interface Select {
  readonly query: string
  /** Values that the server binds. They are never concatenated into the query. */
  readonly params: Readonly<Record<string, unknown>>
  /** Deadline of the whole read, including its result. The queries of one request share a signal. */
  readonly signal: AbortSignal
  readonly settings?: ClickHouseSettings
  /** The only trace that is read (`BoundQuery`). */
  readonly trace?: TraceKey
}

/** A time divided into steps of the same length. */
export interface TimeSteps {
  /** Start of the first step, Unix ms, at or before the start of the read time. */
  readonly startMs: number
  readonly stepMs: number
  readonly count: number
}

/** An SQL condition with the values that it binds. */
export interface BoundCondition {
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
}

const READ_SETTINGS: ClickHouseSettings = {
  // A read cannot change anything. The next setting but one has no effect without this one. 2 and not 1, because a server
  // whose profile has 2 refuses 1 as a change of a setting.
  readonly: '2',
  // The result is complete or an error: a query that fails halfway must not look like a short result.
  wait_end_of_query: 1,
  // Results up to this size wait in memory. By default each one is a temporary file, for which the file system may have to
  // write its journal while Redis syncs.
  http_response_buffer_size: String(8 * MIB),
  // A query stops when its client closes the connection.
  cancel_http_readonly_queries_on_client_close: 1,
  // Results are small, and further threads to format them take 0.5 ms to prepare, of 6 in the read of a trace.
  output_format_parallel_formatting: 0,
  // JSON numbers above 2^53 would lose their last digits.
  output_format_json_quote_64bit_integers: 1,
}

/** Limits of the reads of a client. A read that exceeds one of them fails. */
interface ReadLimits {
  /** How long the server works on one query, also if its client has left unnoticed. */
  readonly timeoutMs: number
  /** Memory of the server for one query. */
  readonly memoryBytes: number
  /** Amounts that one query reads from the tables. */
  readonly readRows: number
  readonly readBytes: number
  /** Size of one result in the memory of the server. */
  readonly resultBytes: number
}

const OVERCOMMIT_BYTES = 64 * MIB

/** Returns the settings of a client that only reads. A single read may lower the limits. */
export function readLimitSettings(limits: ReadLimits): ClickHouseSettings {
  return {
    readonly: '2',
    max_execution_time: Math.ceil(limits.timeoutMs / 1_000),
    // By default the server estimates after ten seconds how long a query will take, instead of measuring.
    timeout_before_checking_execution_speed: 0,
    max_memory_usage: String(limits.memoryBytes),
    // Groups and sorts go to disk instead of over the limit.
    max_bytes_before_external_group_by: String(limits.memoryBytes / 4),
    max_bytes_before_external_sort: String(limits.memoryBytes / 4),
    // When the memory of the server is used up, it cancels the query that is most above this amount. Inserts have 1 GiB.
    memory_overcommit_ratio_denominator: String(OVERCOMMIT_BYTES),
    max_rows_to_read: String(limits.readRows),
    max_bytes_to_read: String(limits.readBytes),
    max_result_bytes: String(limits.resultBytes),
    result_overflow_mode: 'throw',
  }
}

/**
 * Runs a query and returns its rows as objects by column name. Throws the result of `classifyClickHouseError`, or a
 * TransientError when the signal fires.
 */
export async function selectRows<T>(client: ClickHouseClient, select: Select): Promise<T[]> {
  const settings: ClickHouseSettings = { ...select.settings, output_format_json_array_of_rows: 1 }
  const bytes = await selectBytes(client, { ...select, query: `${select.query}\nFORMAT JSONEachRow`, settings })
  return JSON.parse(bytes.toString()) as T[]
}

/** Runs a query that contains its own FORMAT, and returns the bytes of the result. Throws as `selectRows` does. */
export async function selectBytes(client: ClickHouseClient, select: Select): Promise<Buffer> {
  const chunks: Buffer[] = []
  await selectChunks(client, select, chunk => {
    chunks.push(chunk)
  })
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

/** Runs a query that contains its own FORMAT, and passes on the result chunk by chunk. Throws as `selectRows` does. */
export async function selectChunks(
  client: ClickHouseClient,
  { query, params, settings, signal, trace }: Select,
  onChunk: (chunk: Buffer) => void,
): Promise<void> {
  try {
    await client.reads.read({ query, params, settings: { ...READ_SETTINGS, ...settings }, signal, trace }, onChunk)
  } catch (error) {
    if (signal.aborted) throw new TransientError('ClickHouse did not respond in time', { cause: error })
    throw classifyClickHouseError(error)
  }
}
