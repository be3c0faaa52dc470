import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  COLUMNS_AT,
  type ColumnsRow,
  type ColumnsSelection,
  selectTraceColumns,
} from '../../clickhouse/queries/traces/select-trace-columns.ts'
import {
  MOST_SURFACES,
  selectTraceExtent,
  type TraceArrivals,
} from '../../clickhouse/queries/traces/select-trace-extent.ts'
import { SPAN_AT } from '../../clickhouse/queries/traces/span-row.ts'
import type { TraceKey } from '../../clickhouse/read-connection.ts'
import { MIB } from '../../schemas/units.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import { type ArrangedTrace, doubled, TraceSkeleton } from './trace-skeleton.ts'

/** Spans of a trace, as columns. */
export interface TraceColumns {
  readonly skeleton: TraceSkeleton
  readonly arranged: ArrangedTrace
  /** Further columns of the rows of the skeleton: `skeleton.rowOf` is the position in each column. */
  readonly facts: SpanFacts
  /** Whether further stored rows were not examined. */
  readonly truncated: boolean
}

/** Columns of the stored rows of a trace, in the order in which they were read. */
interface SpanFacts {
  readonly flags: Uint32Array
  /** Empty unless `sizes` are selected. */
  readonly textBytes: Uint32Array
  /** Empty unless `shown` texts are selected. */
  readonly httpStatusCodes: Uint16Array
  readonly kinds: Uint8Array
  readonly statuses: Uint8Array
}

/** All spans of a trace with what a waterfall shows of them. */
export interface Waterfall extends TraceColumns {
  readonly names: TextColumn
  readonly services: TextColumn
  /** Those of all stored rows, duplicates included. */
  readonly arrivals: TraceArrivals
}

/** Stores from which a trace is read. */
export interface TraceReadDeps {
  readonly clickhouse: ClickHouseClient
  /** Slots for large traces, which bound the memory that they need. */
  readonly largeTraces: Pick<FairSlots, 'run'>
}

/** The most stored rows of a trace that is read without waiting for a slot. Its first rows are read twice if it has more. */
export const SMALL_TRACE_ROWS = 16_000
/**
 * Limit of the stored rows of a trace that are examined, at which reading it takes 100 MB and 1.3 s of CPU. A trace grows
 * without end if a client never changes its trace id, and a client that knows a trace id can add spans to it. The first rows
 * by start are examined, because most parents start before their children.
 */
export const EXAMINED_ROWS = 1_000_000

const SMALL_CAPACITY = 1_024
/** Columns of a large trace never grow: while one of them is copied it has 1.5 times its memory. Pages without rows take none. */
const LARGE_CAPACITY = 2 ** 20
/** Limits of the distinct texts of a waterfall. */
const NAME_BYTES = 4 * MIB
const SERVICE_BYTES = MIB

/**
 * Loads columns of a trace, or undefined if no row is found. At most `maxRows` stored rows are examined, and passed to `onRow`,
 * which keeps what it needs of their texts. Throws a TransientError if ClickHouse does not respond before the signal fires. A
 * million spans take 90 MB.
 */
export async function loadColumns(
  client: ClickHouseClient,
  key: TraceKey,
  selection: ColumnsSelection,
  onRow: (row: ColumnsRow) => void,
  signal: AbortSignal,
): Promise<TraceColumns | undefined> {
  const { maxRows } = selection
  const capacity = maxRows > SMALL_TRACE_ROWS ? LARGE_CAPACITY : SMALL_CAPACITY
  const skeleton = new TraceSkeleton(capacity)
  const facts = new GrowingFacts(selection.texts, capacity)
  let rowCount = 0
  const add = (found: ColumnsRow) => {
    if (rowCount++ === maxRows) return
    facts.add(found)
    skeleton.add(found.view, found.row)
    onRow(found)
  }
  await selectTraceColumns(client, key, { ...selection, maxRows: maxRows + 1 }, add, signal)
  if (skeleton.size === 0) return undefined
  return { skeleton, facts, arranged: skeleton.arrange(), truncated: rowCount > maxRows }
}

/**
 * Loads the columns of a whole trace and returns what `use` makes of them, or undefined if nothing of the trace is retained. Those
 * of a large trace must not outlive `use`, because its slot ends with it (docs/api/traces.md#trace-columns).
 */
export async function useWaterfall<T>(
  { clickhouse, largeTraces }: TraceReadDeps,
  key: TraceKey,
  signal: AbortSignal,
  use: (waterfall: Waterfall) => Promise<T>,
): Promise<T | undefined> {
  const small = await loadWaterfall(clickhouse, key, SMALL_TRACE_ROWS, signal)
  if (small === undefined) return undefined
  if (!small.truncated) return use(small)
  const useLarge = async () => {
    const large = await loadWaterfall(clickhouse, key, EXAMINED_ROWS, signal)
    if (large === undefined) return undefined
    return use(large.truncated ? await withExtent(clickhouse, key, large, signal) : large)
  }
  return largeTraces.run(key.workspaceId, useLarge, signal)
}

/** Loads the waterfall of a trace. At most `maxRows` stored rows are examined, the first ones by start. */
export async function loadWaterfall(
  client: ClickHouseClient,
  key: TraceKey,
  maxRows: number,
  signal: AbortSignal,
): Promise<Waterfall | undefined> {
  const services = new TextColumn(SERVICE_BYTES)
  const names = new TextColumn(NAME_BYTES)
  const arrivals = new GrowingArrivals()
  const add = (row: ColumnsRow) => {
    const { bytes, starts, ends } = row
    services.add(bytes, starts[0] ?? 0, ends[0] ?? 0)
    names.add(bytes, starts[1] ?? 0, ends[1] ?? 0)
    arrivals.add(row)
  }
  const columns = await loadColumns(client, key, { texts: 'cut', maxRows }, add, signal)
  return columns && { ...columns, services, names, arrivals }
}

/** Returns truncated columns with the end and the arrivals of the whole trace. Its start is theirs: they have the first spans. */
async function withExtent(client: ClickHouseClient, key: TraceKey, columns: Waterfall, signal: AbortSignal) {
  const extent = await selectTraceExtent(client, key, signal)
  if (extent === undefined) return columns
  const { endedAtUnixNano, arrivals } = extent
  return { ...columns, arranged: { ...columns.arranged, endedAtUnixNano }, arrivals }
}

/** The arrivals of the rows that were added. */
class GrowingArrivals implements TraceArrivals {
  firstMs = Number.POSITIVE_INFINITY
  lastMs = 0
  readonly #surfaceIds = new Set<string>()
  #latest = ''

  get surfaceIds(): readonly string[] {
    return [...this.#surfaceIds]
  }

  add({ bytes, view, row, starts, ends }: ColumnsRow): void {
    const receivedMs = receivedAtMs(view, row)
    if (receivedMs < this.firstMs) this.firstMs = receivedMs
    if (receivedMs > this.lastMs) this.lastMs = receivedMs
    const surfaceId = bytes.toString('latin1', starts[2], ends[2])
    if (surfaceId === this.#latest) return
    this.#latest = surfaceId
    if (this.#surfaceIds.size < MOST_SURFACES) this.#surfaceIds.add(surfaceId)
  }
}

/** Returns when a row arrived, in Unix milliseconds. */
function receivedAtMs(view: DataView, row: number): number {
  return view.getUint32(row + SPAN_AT.receivedAt + 4, true) * 2 ** 32 + view.getUint32(row + SPAN_AT.receivedAt, true)
}

/** Columns that grow with each row. Those that the selection does not need stay empty: a million rows would have 6 MB of them. */
class GrowingFacts implements SpanFacts {
  #size = 0
  flags: Uint32Array<ArrayBuffer>
  textBytes: Uint32Array<ArrayBuffer>
  httpStatusCodes: Uint16Array<ArrayBuffer>
  kinds: Uint8Array<ArrayBuffer>
  statuses: Uint8Array<ArrayBuffer>

  constructor(texts: ColumnsSelection['texts'], capacity: number) {
    this.flags = new Uint32Array(capacity)
    this.textBytes = new Uint32Array(texts === 'sizes' ? capacity : 0)
    this.httpStatusCodes = new Uint16Array(texts === 'shown' ? capacity : 0)
    this.kinds = new Uint8Array(capacity)
    this.statuses = new Uint8Array(capacity)
  }

  add({ view, row }: ColumnsRow): void {
    if (this.#size === this.flags.length) this.#grow()
    const at = this.#size++
    this.flags[at] = view.getUint32(row + COLUMNS_AT.flags, true)
    // A value beyond the end of an array is dropped.
    this.textBytes[at] = view.getUint32(row + COLUMNS_AT.textBytes, true)
    this.httpStatusCodes[at] = view.getUint16(row + COLUMNS_AT.httpStatusCode, true)
    this.kinds[at] = view.getUint8(row + COLUMNS_AT.kind)
    this.statuses[at] = view.getUint8(row + COLUMNS_AT.statusCode)
  }

  #grow(): void {
    this.flags = new Uint32Array(doubled(this.flags))
    this.textBytes = new Uint32Array(doubled(this.textBytes))
    this.httpStatusCodes = new Uint16Array(doubled(this.httpStatusCodes))
    this.kinds = new Uint8Array(doubled(this.kinds))
    this.statuses = new Uint8Array(doubled(this.statuses))
  }
}

const FIRST_CAPACITY = 1_024
/** The index of a text that did not fit. */
const NOT_KEPT = -1

/**
 * A column of texts: the distinct ones, and the index of the text of each row. Texts beyond the limit of bytes are not kept, so
 * that a client which names each of a million spans differently cannot fill the memory.
 */
class TextColumn {
  readonly #indexes = new Map<string, number>()
  #rows = new Int32Array(FIRST_CAPACITY)
  #size = 0
  #bytesLeft: number

  /** `limitBytes` is that of the distinct texts. */
  constructor(limitBytes: number) {
    this.#bytesLeft = limitBytes
  }

  /** Adds the UTF-8 text `bytes[start, end)` as that of the next row. */
  add(bytes: Buffer, start: number, end: number): void {
    if (this.#size === this.#rows.length) this.#rows = new Int32Array(doubled(this.#rows))
    // Bytes are compared, one character for each of them: decoding UTF-8 of a million rows would take four times as long.
    this.#rows[this.#size++] = this.#keep(bytes.toString('latin1', start, end))
  }

  /** Returns the index of the text of a row, or a negative number if it is not kept. */
  indexOf(row: number): number {
    return this.#rows[row] ?? NOT_KEPT
  }

  /** Returns the distinct texts by their indexes. */
  distinct(): string[] {
    return Array.from(this.#indexes.keys(), text => Buffer.from(text, 'latin1').toString())
  }

  #keep(text: string): number {
    const known = this.#indexes.get(text)
    if (known !== undefined) return known
    if (text.length > this.#bytesLeft) return NOT_KEPT
    this.#bytesLeft -= text.length
    const index = this.#indexes.size
    this.#indexes.set(text, index)
    return index
  }
}
