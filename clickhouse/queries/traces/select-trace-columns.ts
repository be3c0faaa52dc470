import type { ClickHouseClient } from '../../client.ts'
import { selectChunks } from '../../select.ts'
import type { TraceKey } from './select-trace.ts'
import { OF_TRACE, SPAN_AT, SPAN_HEAD, TRACE_STREAM_SETTINGS } from './span-row.ts'

/** Positions in a row of what follows the head (`SPAN_HEAD`). Texts follow: the surface, the service, and the name of the span. */
export const COLUMNS_AT = {
  /** As OTLP has them, UInt32. */
  flags: SPAN_AT.rest,
  kind: SPAN_AT.rest + 4,
  statusCode: SPAN_AT.rest + 5,
  texts: SPAN_AT.rest + 6,
} as const

/** Characters after which a name is cut. The whole name is in the details of the span. */
const NAME_CHARACTERS = 256

/** Rows up to which one thread reads them. Preparing a second one took 2 ms of 8 for a trace of 1,000 spans among 30 million. */
const ONE_THREAD_ROWS = 20_000

/** A row, and where the bytes of its texts are. It is valid until `onRow` returns. */
export interface ColumnsRow {
  readonly bytes: Buffer
  readonly view: DataView
  /** Position of its first byte. */
  readonly row: number
  readonly surfaceStart: number
  readonly surfaceEnd: number
  readonly serviceStart: number
  readonly serviceEnd: number
  readonly nameStart: number
  readonly nameEnd: number
}

/**
 * Passes the stored rows of a trace with the columns of a waterfall to `onRow`, including duplicates, ordered by start and span
 * id: the first `maxRows` of them. The order is that of the primary key, so no more than these rows are read.
 */
export async function selectTraceColumns(
  client: ClickHouseClient,
  key: TraceKey,
  maxRows: number,
  onRow: (row: ColumnsRow) => void,
  signal: AbortSignal,
): Promise<void> {
  const query = `
    SELECT ${SPAN_HEAD}, flags, kind, status_code, toString(surface_id), leftUTF8(service_name, ${NAME_CHARACTERS}),
           leftUTF8(name, ${NAME_CHARACTERS})
    FROM spans WHERE ${OF_TRACE} ORDER BY start_time_unix_nano, span_id
    LIMIT {maxRows: UInt32} FORMAT RowBinary`
  const reader = new RowReader()
  const isSmall = maxRows <= ONE_THREAD_ROWS
  const settings = {
    ...TRACE_STREAM_SETTINGS,
    ...(isSmall ? { max_threads: 1 } : { output_format_parallel_formatting: 1 as const }),
  }
  await selectChunks(client, { query, params: { ...key, maxRows }, signal, settings, trace: key }, chunk =>
    reader.read(chunk, onRow),
  )
  if (reader.isWithinRow) throw new Error('the result of ClickHouse ended within a row')
}

/** Cuts chunks into rows. It passes the same object for each of them, because a million objects would be garbage. */
class RowReader {
  /** The beginning of a row that continues in the next chunk. */
  #begun: Buffer = Buffer.alloc(0)
  readonly #row = {
    bytes: this.#begun,
    view: new DataView(this.#begun.buffer),
    ...{ row: 0, surfaceStart: 0, surfaceEnd: 0, serviceStart: 0, serviceEnd: 0, nameStart: 0, nameEnd: 0 },
  }
  /** Start and end of the text that was read last. */
  #start = 0
  #end = 0

  get isWithinRow(): boolean {
    return this.#begun.length > 0
  }

  read(chunk: Buffer, onRow: (row: ColumnsRow) => void): void {
    const row = this.#row
    const bytes = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk])
    row.bytes = bytes
    row.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    let at = 0
    for (;;) {
      row.row = at
      if (!this.#readText(bytes, at + COLUMNS_AT.texts)) break
      row.surfaceStart = this.#start
      row.surfaceEnd = this.#end
      if (!this.#readText(bytes, this.#end)) break
      row.serviceStart = this.#start
      row.serviceEnd = this.#end
      if (!this.#readText(bytes, this.#end)) break
      row.nameStart = this.#start
      row.nameEnd = this.#end
      at = this.#end
      onRow(row)
    }
    // Copied, because the chunk must not stay in memory for its last bytes.
    this.#begun = Buffer.from(bytes.subarray(at))
  }

  /** Reads the text whose length, a varint, is at `at`. Returns false if the chunk ends before the text does. */
  #readText(bytes: Buffer, at: number): boolean {
    let start = at
    let size = 0
    for (let factor = 1; ; factor *= 0x80) {
      const byte = bytes[start++]
      if (byte === undefined) return false
      size += (byte & 0x7f) * factor
      if (byte < 0x80) break
    }
    this.#start = start
    this.#end = start + size
    return this.#end <= bytes.length
  }
}
