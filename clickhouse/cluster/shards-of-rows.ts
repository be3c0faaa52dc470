import { GrowingBuffer } from '../native/growing-buffer.ts'
import { type Dictionary, LowCardinality } from '../native/low-cardinality.ts'
import type { TableBuffer } from '../native/table-buffer.ts'
import { SHARD_KEYS } from './shard-keys.ts'

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})
const START = 0xffffffff

/** Continues the CRC-32 of zlib, which ClickHouse's function of that name computes. */
function addToCrc(crc: number, bytes: Uint8Array, start: number, end: number): number {
  let value = crc
  for (let i = start; i < end; i++) value = (CRC_TABLE[(value ^ (bytes[i] as number)) & 0xff] as number) ^ (value >>> 8)
  return value
}

/** Returns the shard of a trace. */
export function shardOfTrace(
  { workspaceId, traceId }: { workspaceId: string; traceId: string },
  shards: number,
): number {
  const crc = [Buffer.from(workspaceId), Buffer.from(traceId, 'hex')].reduce(
    (value, bytes) => addToCrc(value, bytes, 0, bytes.length),
    START,
  )
  return (~crc >>> 0) % shards
}

/**
 * Returns the shard of each row of a table. It costs 30 ns a row where each has another key; rows of a trace mostly follow each
 * other, and the key of the row before is not hashed again.
 */
export function shardsOfRows(buffer: TableBuffer, shards: number): Uint8Array {
  const key = SHARD_KEYS[buffer.table]
  if (key === undefined) throw new TypeError(`no shard key is known of the table ${buffer.table}`)
  const crcs = workspaceCrcs(buffer)
  const [first, second] = key.map(name => keyColumn(buffer, name))
  const found = new Uint8Array(buffer.rows)
  if (first === undefined) return found
  let last: { crc: number; bytes: Uint8Array; start: number; end: number; shard: number } | undefined
  for (let row = 0; row < found.length; row++) {
    first.next()
    second?.next()
    const { bytes, start, end } = second !== undefined && isZero(first) ? second : first
    const crc = crcs(row)
    if (last === undefined || last.crc !== crc || !isEqual(last, bytes, start, end)) {
      const shard = (~addToCrc(crc, bytes, start, end) >>> 0) % shards
      last = { crc, bytes, start, end, shard }
    }
    found[row] = last.shard
  }
  return found
}

function isEqual(
  last: { bytes: Uint8Array; start: number; end: number },
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  const size = end - start
  if (last.bytes !== bytes || last.end - last.start !== size) return false
  for (let i = 0; i < size; i++) if (bytes[last.start + i] !== bytes[start + i]) return false
  return true
}

function isZero({ bytes, start, end }: KeyColumn): boolean {
  for (let i = start; i < end; i++) if (bytes[i] !== 0) return false
  return true
}

/** Returns a function from rows to the CRC-32 of their workspaces. */
function workspaceCrcs(buffer: TableBuffer): (row: number) => number {
  const [part] = buffer.columns.find(({ name }) => name === 'workspace_id')?.parts ?? []
  if (!(part instanceof LowCardinality)) throw new TypeError(`${buffer.table} has no workspace_id as LowCardinality`)
  const { dictionary, indexes } = part
  const crcs: number[] = []
  return row => {
    const index = indexes.view.getUint32(row * 4, true)
    crcs[index] ??= crcOfKey(dictionary, index)
    return crcs[index]
  }
}

function crcOfKey(dictionary: Dictionary, index: number): number {
  const { bytes } = dictionary.keys
  const { start, end } = readString(bytes, dictionary.startOf(index))
  return addToCrc(START, bytes, start, end)
}

function readString(bytes: Uint8Array, at: number): { start: number; end: number } {
  let start = at
  let size = 0
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[start++] as number
    size |= (byte & 0x7f) << shift
    if (byte < 0x80) return { start, end: start + size }
  }
}

/** Reads a column row by row. After `next`, `start` and `end` are those of the bytes of the row. */
class KeyColumn {
  readonly bytes: Uint8Array
  readonly #width: number
  start = 0
  end = 0

  constructor(bytes: Uint8Array, width: number) {
    this.bytes = bytes
    this.#width = width
  }

  next(): void {
    if (this.#width > 0) {
      this.start = this.end
      this.end += this.#width
    } else ({ start: this.start, end: this.end } = readString(this.bytes, this.end))
  }
}

function keyColumn(buffer: TableBuffer, name: string): KeyColumn {
  const column = buffer.columns.find(column => column.name === name)
  const [part] = column?.parts ?? []
  if (column === undefined || !(part instanceof GrowingBuffer)) {
    throw new TypeError(`${buffer.table} has no plain column ${name}`)
  }
  return new KeyColumn(part.bytes, widthOf(column.type))
}

/** Returns the width of a type in bytes, 0 for String. */
function widthOf(type: string): number {
  if (type === 'String') return 0
  const width = /^FixedString\((\d+)\)$/.exec(type)?.[1]
  if (width !== undefined) return Number(width)
  if (type === 'UInt64' || type.startsWith('DateTime64')) return 8
  throw new TypeError(`a column of the type ${type} cannot be a shard key`)
}
