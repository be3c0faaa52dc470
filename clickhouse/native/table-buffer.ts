import type { GrowingBuffer } from './growing-buffer.ts'
import { Leaves } from './leaves.ts'
import { type Dictionary, LowCardinality } from './low-cardinality.ts'
import { chunksOfRanges, type RowRanges } from './row-ranges.ts'

/** Smaller chunks are joined: a block has more than a hundred, and each would be a separate write. */
const JOIN_BELOW_BYTES = 16 * 1024

/**
 * One column of a Native block. Its data is the concatenation of its parts in ClickHouse's order: offsets before the
 * elements they count, keys before values, the elements of a tuple one after the other. Columns may share parts, for
 * example the offsets of a Map and of the Array of its types.
 */
export interface Column {
  name: string
  type: string
  parts: readonly (GrowingBuffer | LowCardinality)[]
}

/** Creates a column from its name, its type and its parts. */
export function column(name: string, type: string, ...parts: Column['parts']): Column {
  return { name, type, parts }
}

/** The rows of one table in column buffers. Their owner fills them; mark and rewind apply to all of them. */
export class TableBuffer {
  readonly table: string
  readonly columns: readonly Column[]
  rows = 0
  /** The buffers and dictionaries of all columns. */
  readonly leaves: Leaves
  private readonly headers: readonly Uint8Array[]
  private marks: number[] = []
  private markedRows = 0
  private measured: number[] = []
  private readonly jobMarks: number[] = []
  private jobMarkedRows = 0

  /** `beside` are dictionaries that values of the columns are made of. */
  constructor(table: string, columns: readonly Column[], beside: readonly Dictionary[] = []) {
    this.table = table
    this.columns = columns
    const parts = columns.flatMap(column => column.parts)
    const leaves = parts.flatMap(part => (part instanceof LowCardinality ? part.leaves : [part]))
    this.leaves = new Leaves([...leaves, ...beside])
    this.headers = columns.map(column => Buffer.concat([nativeString(column.name), nativeString(column.type)]))
  }

  /** Returns `bytes`, and notes the lengths for `keepMeasured`. */
  measure(): number {
    return this.leaves.mark(this.measured)
  }

  /** Keeps what `measure` has noted: `rewind` returns to that state. No row may have been added since. */
  keepMeasured(): void {
    const { marks, measured } = this
    this.marks = measured
    this.measured = marks
    this.markedRows = this.rows
  }

  /** Removes the rows added since `keepMeasured`. */
  rewind(): void {
    this.rows = this.markedRows
    this.leaves.rewind(this.marks)
  }

  /** Begins a job of several payloads. `rewindJob` returns to this state. */
  markJob(): void {
    this.jobMarkedRows = this.rows
    this.leaves.mark(this.jobMarks)
  }

  /** Removes the rows added since `markJob`. */
  rewindJob(): void {
    this.rows = this.jobMarkedRows
    this.leaves.rewind(this.jobMarks)
  }

  /** Removes all rows. */
  reset(): void {
    this.rows = 0
    this.leaves.reset()
  }

  /** Removes all rows and gives the memory back. */
  shrink(): void {
    this.rows = 0
    this.leaves.shrink()
  }

  /** Number of bytes in the buffers, approximately the size of the block. */
  get bytes(): number {
    return this.leaves.usedBytes
  }

  /**
   * Returns the Native block of an HTTP insert (client revision 0: no block info, no serialization kinds). It consists
   * of varint columns, varint rows, then name, type and data of each column. The chunks are valid until the next append
   * or reset.
   */
  block(): Uint8Array[] {
    const chunks: Uint8Array[] = [Buffer.concat([varint(this.columns.length), varint(this.rows)])]
    for (const [i, column] of this.columns.entries()) {
      chunks.push(this.headers[i] as Uint8Array)
      for (const part of column.parts) {
        if (part instanceof LowCardinality) chunks.push(...part.chunks())
        else chunks.push(part.written())
      }
    }
    return joinSmall(chunks)
  }

  /** Returns the Native block of some rows, as a copy. For shards of a cluster: it costs as much as encoding the rows again. */
  blockOf(ranges: RowRanges): Uint8Array[] {
    if (ranges.count === this.rows) return this.block()
    const chunks: Uint8Array[] = [Buffer.concat([varint(this.columns.length), varint(ranges.count)])]
    for (const [i, { type, parts }] of this.columns.entries()) {
      chunks.push(this.headers[i] as Uint8Array, ...chunksOfRanges(type, parts, ranges))
    }
    return joinSmall(chunks)
  }
}

function joinSmall(chunks: Uint8Array[]): Uint8Array[] {
  const joined: Uint8Array[] = []
  let small: Uint8Array[] = []
  for (const chunk of chunks) {
    if (chunk.length < JOIN_BELOW_BYTES) {
      small.push(chunk)
      continue
    }
    if (small.length > 0) joined.push(Buffer.concat(small))
    small = []
    joined.push(chunk)
  }
  if (small.length > 0) joined.push(Buffer.concat(small))
  return joined
}

function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest & 0x7f) | 0x80)
    rest = Math.floor(rest / 128)
  }
  return Uint8Array.from([...bytes, rest])
}

function nativeString(text: string): Uint8Array {
  const bytes = Buffer.from(text)
  return Buffer.concat([varint(bytes.length), bytes])
}
