import { Readable } from 'node:stream'
import type { ClickHouseClient } from '@clickhouse/client'

/** Limits within which rows of several calls are inserted together. The names are those of ClickHouse. */
interface GatheringLimits {
  readonly async_insert_busy_timeout_max_ms: number
  readonly async_insert_max_data_size: number
}

/** Options of a row inserter. */
interface RowInserterOptions extends GatheringLimits {
  readonly table: string
  /**
   * Where rows are collected. `server`: each call is an asynchronous insert, which the server combines with others.
   * `process`: rows are collected here within the same limits, for a server without a queue for asynchronous inserts.
   */
  readonly gatherIn: 'server' | 'process'
}

/** Inserts lines of JSONEachRow. Settles when ClickHouse has confirmed the rows. */
type InsertRows = (lines: string) => Promise<void>

/** Creates a function that inserts rows. */
export function createRowInserter(clickhouse: ClickHouseClient, options: RowInserterOptions): InsertRows {
  const { table, gatherIn, ...limits } = options
  const asynchronous = { async_insert: 1, wait_for_async_insert: 1, ...limits } as const
  const insert = async (lines: readonly string[], settings: object) => {
    const { stream } = await clickhouse.exec({
      query: `INSERT INTO ${table} FORMAT JSONEachRow`,
      values: Readable.from(lines, { objectMode: false }),
      clickhouse_settings: { wait_end_of_query: 1, ...settings },
    })
    for await (const _ of stream);
  }
  if (gatherIn === 'server') return lines => insert([lines], asynchronous)
  return gather(lines => insert(lines, { async_insert: 0 }), limits)
}

interface Batch {
  length: number
  /** Waiting rows as text. A hundred thousand objects would cost the garbage collector more than the decoder. */
  readonly lines: string[]
  readonly stored: Promise<void>
  send(): void
}

function gather(insert: (lines: readonly string[]) => Promise<void>, limits: GatheringLimits): InsertRows {
  let open: Batch | undefined

  function openBatch(): Batch {
    const { promise, resolve } = Promise.withResolvers<void>()
    const lines: string[] = []
    const batch: Batch = {
      length: 0,
      lines,
      stored: promise.then(() => insert(lines)),
      send() {
        clearTimeout(timer)
        if (open === batch) open = undefined
        resolve()
      },
    }
    const timer = setTimeout(batch.send, limits.async_insert_busy_timeout_max_ms)
    return batch
  }

  return lines => {
    open ??= openBatch()
    const batch = open
    batch.length += lines.length
    batch.lines.push(lines)
    if (batch.length >= limits.async_insert_max_data_size) batch.send()
    return batch.stored
  }
}
