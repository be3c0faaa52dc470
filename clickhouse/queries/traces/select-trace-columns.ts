import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import type { TraceKey } from '../../read-connection.ts'
import { selectBytes, selectChunks } from '../../select.ts'
import { OF_SPANS, OF_TRACE, SPAN_AT, SPAN_HEAD, SPAN_PRECEDENCE, TRACE_READ_SETTINGS } from './span-row.ts'

/** Positions in a row of what follows the head (`SPAN_HEAD`). The texts follow, each as its length (a varint) and its bytes. */
export const COLUMNS_AT = {
  /** As OTLP has them, UInt32. */
  flags: SPAN_AT.rest,
  /** Bytes of the shown texts in JSON, UInt32. 0 unless `sizes` are selected. */
  textBytes: SPAN_AT.rest + 4,
  /** As stored (`HttpStatusColumn`), UInt16. */
  httpStatusCode: SPAN_AT.rest + 8,
  kind: SPAN_AT.rest + 10,
  statusCode: SPAN_AT.rest + 11,
  texts: SPAN_AT.rest + 12,
} as const

/** Texts of a waterfall. Longer ones are cut: the whole name is in the details of the span. */
const CUT_TEXTS = ['leftUTF8(service_name, 256)', 'leftUTF8(name, 256)', 'toString(surface_id)'] as const
/** Texts of a list of spans. */
const SHOWN_TEXTS = ['name', 'service_name', 'status_message', 'session_id', 'http_route'] as const

const TEXTS = { cut: CUT_TEXTS, shown: SHOWN_TEXTS, sizes: [] } as const

/** A control character of a text has six bytes in JSON. */
const TEXT_BYTES = `toUInt32(least(4294967295, length(toJSONString(name)) + length(toJSONString(status_message))
  + length(toJSONString(service_name)) + length(session_id) + length(toJSONString(http_route))))`

/** Rows up to which one thread reads them. Preparing a second one took 2 ms of 8 for a trace of 1,000 spans among 30 million. */
const ONE_THREAD_ROWS = 20_000

/** Selects rows of a trace. */
export interface ColumnsSelection {
  readonly texts: keyof typeof TEXTS
  /** Spans of which one row each is selected, the one to show. All rows unless given. 16 hex digits each. */
  readonly spanIds?: readonly string[]
  readonly maxRows: number
  /** Limit of the result in the memory of ClickHouse: above it, the read fails with its code 396. None unless given. */
  readonly maxBytes?: number
}

/** A row, and where the bytes of its texts are. It is valid until `onRow` returns. */
export interface ColumnsRow {
  readonly bytes: Buffer
  readonly view: DataView
  /** Position of its first byte. */
  readonly row: number
  readonly starts: Uint32Array
  readonly ends: Uint32Array
}

/**
 * Passes stored rows of a trace to `onRow`, including duplicates: the first `maxRows` by start and span id. Rows with shown texts
 * have no order, because a caller that reads them needs all: that saves a sort. The read is not restricted to the days of a
 * finding, because spans may arrive on another day than their exception.
 */
export async function selectTraceColumns(
  client: ClickHouseClient,
  key: TraceKey,
  { texts, spanIds, maxRows, maxBytes = 0 }: ColumnsSelection,
  onRow: (row: ColumnsRow) => void,
  signal: AbortSignal,
): Promise<void> {
  const size = texts === 'sizes' ? TEXT_BYTES : 'toUInt32(0)'
  const columns = [SPAN_HEAD, 'flags', size, 'http_status_code', 'kind', 'status_code', ...TEXTS[texts]]
  const rows = spanIds ? `${OF_SPANS} ORDER BY ${SPAN_PRECEDENCE} LIMIT 1 BY span_id` : OF_TRACE
  const order = texts === 'shown' ? '' : 'ORDER BY start_time_unix_nano, span_id'
  const query = `
    SELECT ${columns.join(', ')} FROM spans WHERE ${rows} ${order} LIMIT {maxRows: UInt32} FORMAT RowBinary`
  const settings: ClickHouseSettings = {
    ...TRACE_READ_SETTINGS,
    max_result_bytes: String(maxBytes),
    result_overflow_mode: 'throw',
    ...(maxRows <= ONE_THREAD_ROWS ? { max_threads: 1 } : { output_format_parallel_formatting: 1 as const }),
  }
  const reader = new RowReader(TEXTS[texts].length)
  const select = { query, params: { ...key, maxRows, ...(spanIds && { spanIds }) }, signal, settings, trace: key }
  // Shown texts are kept. One buffer leaves the process when it is freed, while chunks of 64 KiB stay in its heap.
  if (texts === 'shown') reader.read(await selectBytes(client, select), onRow)
  else await selectChunks(client, select, chunk => reader.read(chunk, onRow))
  if (reader.isWithinRow) throw new RangeError('the result of ClickHouse ended within a row')
}

/** Bytes of a chunk that are joined with the beginning of a row at first. Most rows have less. */
const JOINED_BYTES = 512

/** Cuts chunks into rows. It passes the same object for each of them, because a million objects would be garbage. */
class RowReader {
  /** The beginning of a row that continues in the next chunk. */
  #begun: Buffer = Buffer.alloc(0)
  readonly #row

  constructor(textCount: number) {
    this.#row = {
      bytes: this.#begun,
      view: new DataView(this.#begun.buffer),
      row: 0,
      starts: new Uint32Array(textCount),
      ends: new Uint32Array(textCount),
    }
  }

  get isWithinRow(): boolean {
    return this.#begun.length > 0
  }

  read(chunk: Buffer, onRow: (row: ColumnsRow) => void): void {
    let at = 0
    // A row that began in the last chunk is joined with as much of this one as it needs. Joined chunks would be much garbage.
    for (let size = JOINED_BYTES; this.isWithinRow && at < chunk.length; size *= 2) {
      const joined = Buffer.concat([this.#begun, chunk.subarray(at, at + size)])
      const end = this.#readRows(joined, onRow, 1)
      at = end === 0 ? at + size : at + end - this.#begun.length
      this.#begun = end === 0 ? joined : Buffer.alloc(0)
    }
    const rest = chunk.subarray(at)
    const end = this.#readRows(rest, onRow)
    // Copied, because the chunk must not stay in memory for its last bytes.
    if (end < rest.length) this.#begun = Buffer.from(rest.subarray(end))
  }

  /** Passes at most `limit` rows that `bytes` contains whole. Returns the position after them. */
  #readRows(bytes: Buffer, onRow: (row: ColumnsRow) => void, limit = Number.POSITIVE_INFINITY): number {
    const row = this.#row
    row.bytes = bytes
    row.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    let at = 0
    for (let count = 0; count < limit; count++) {
      row.row = at
      const end = this.#readTexts(bytes, at + COLUMNS_AT.texts)
      if (end > bytes.length) break
      at = end
      onRow(row)
    }
    return at
  }

  /** Reads where the texts are. Returns the position after them, which is infinite if the chunk ends before they do. */
  #readTexts(bytes: Buffer, at: number): number {
    const { starts, ends } = this.#row
    let end = at
    for (let text = 0; text < starts.length; text++) {
      let size = 0
      for (let factor = 1; ; factor *= 0x80) {
        const byte = bytes[end++]
        if (byte === undefined) return Number.POSITIVE_INFINITY
        size += (byte & 0x7f) * factor
        if (byte < 0x80) break
      }
      starts[text] = end
      end += size
      ends[text] = end
    }
    return end
  }
}
