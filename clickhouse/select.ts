import type { ClickHouseSettings } from '@clickhouse/client'
import { TransientError } from '../shared/runtime/errors.ts'
import { type ClickHouseClient, classifyClickHouseError } from './client.ts'

export interface Select {
  readonly query: string
  /** Bound on the server, never pasted into the query. */
  readonly params: Readonly<Record<string, unknown>>
  /** Covers the whole read, answer included; several queries of one request share one. */
  readonly signal: AbortSignal
  readonly settings?: ClickHouseSettings
}

const READ_SETTINGS: ClickHouseSettings = {
  // The answer is complete or an error: a query that fails half-way through its answer cannot pass for a short one.
  wait_end_of_query: 1,
  // Who hangs up does not leave the query running.
  cancel_http_readonly_queries_on_client_close: 1,
  // JSON numbers above 2^53 would lose their last digits.
  output_format_json_quote_64bit_integers: 1,
}

/** Runs a query and returns its rows by the names of its columns. Throws what `classifyClickHouseError` says, or a TransientError when the signal fires. */
export async function selectRows<T>(client: ClickHouseClient, select: Select): Promise<T[]> {
  return failFast(select.signal, async () => {
    const result = await client.query({
      query: select.query,
      query_params: select.params,
      // Lists of ids go into the body: an address has no room for them.
      use_multipart_params: true,
      format: 'JSONEachRow',
      abort_signal: select.signal,
      clickhouse_settings: { ...READ_SETTINGS, ...select.settings },
    })
    // The client's own signal ends with the head of the answer.
    return closeOn(
      select.signal,
      () => result.close(),
      () => result.json<T>(),
    )
  })
}

/** Runs a query that names its own binary FORMAT and hands over the answer as it comes. */
export async function selectBinary(
  client: ClickHouseClient,
  select: Select,
  onChunk: (chunk: Buffer) => void,
): Promise<void> {
  return failFast(select.signal, async () => {
    const { stream } = await client.exec({
      query: select.query,
      query_params: { ...select.params },
      abort_signal: select.signal,
      clickhouse_settings: { ...READ_SETTINGS, ...select.settings },
    })
    await closeOn(
      select.signal,
      () => stream.destroy(),
      async () => {
        for await (const chunk of stream) onChunk(chunk as Buffer)
      },
    )
  })
}

async function failFast<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  try {
    // The client listens for the abort to come; one that has been it would wait out without it.
    signal.throwIfAborted()
    return await run()
  } catch (error) {
    if (signal.aborted) throw new TransientError('ClickHouse did not answer in time', { cause: error })
    throw classifyClickHouseError(error)
  }
}

async function closeOn<T>(signal: AbortSignal, close: () => void, read: () => Promise<T>): Promise<T> {
  signal.addEventListener('abort', close, { once: true })
  try {
    if (signal.aborted) close()
    return await read()
  } finally {
    signal.removeEventListener('abort', close)
  }
}
