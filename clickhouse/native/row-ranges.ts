import { GrowingBuffer } from './growing-buffer.ts'
import { LowCardinality } from './low-cardinality.ts'

/** Some rows of a table, or values of a column, in their order: starts and ends in turn, the ends exclusive. */
export interface RowRanges {
  readonly bounds: Uint32Array
  readonly count: number
}

/** Returns the rows of one shard. */
export function rangesOf(shards: Uint8Array, shard: number): RowRanges {
  const bounds: number[] = []
  let count = 0
  for (let row = 0; row < shards.length; ) {
    const start = row
    while (row < shards.length && shards[row] === shard) row++
    if (row > start) {
      bounds.push(start, row)
      count += row - start
    } else row++
  }
  return { bounds: Uint32Array.from(bounds), count }
}

/** How the parts of a column contain its values. */
type Layout =
  | { readonly kind: 'fixed'; readonly width: number }
  | { readonly kind: 'string' }
  | { readonly kind: 'dictionary' }
  /** Offsets, then the elements: one layout, those of the keys and the values of a map, or those of a tuple. */
  | { readonly kind: 'array'; readonly elements: readonly Layout[] }
  | { readonly kind: 'all'; readonly members: readonly Layout[] }

const WIDTHS: Readonly<Record<string, number>> = {
  Bool: 1,
  UInt8: 1,
  Int8: 1,
  Enum8: 1,
  UInt16: 2,
  Int16: 2,
  UInt32: 4,
  Int32: 4,
  Float32: 4,
  DateTime: 4,
  UInt64: 8,
  Int64: 8,
  Float64: 8,
  DateTime64: 8,
}

const layouts = new Map<string, Layout>()

/** Returns the layout of a type, which is parsed once. Throws a TypeError for one that no table has. */
function layoutOf(type: string): Layout {
  const known = layouts.get(type)
  if (known !== undefined) return known
  const layout = parseLayout(type.trim())
  layouts.set(type, layout)
  return layout
}

function parseLayout(type: string): Layout {
  const [, name = type, text = ''] = /^(\w+)\((.*)\)$/s.exec(type) ?? []
  if (name === 'String') return { kind: 'string' }
  if (name === 'FixedString') return { kind: 'fixed', width: Number(text) }
  if (type === 'LowCardinality(String)') return { kind: 'dictionary' }
  if (name === 'Array') return { kind: 'array', elements: [layoutOf(text)] }
  if (name === 'Map') return { kind: 'array', elements: argumentsOf(text).map(layoutOf) }
  if (name === 'Tuple') return { kind: 'all', members: argumentsOf(text).map(withoutName).map(layoutOf) }
  if (name === 'Nullable') return { kind: 'all', members: [{ kind: 'fixed', width: 1 }, layoutOf(text)] }
  const width = WIDTHS[name]
  if (width === undefined) throw new TypeError(`values of the type ${type} cannot be divided`)
  return { kind: 'fixed', width }
}

/** Splits at the commas outside of parentheses and quotes. */
function argumentsOf(text: string): string[] {
  const found: string[] = []
  let depth = 0
  let isQuoted = false
  let start = 0
  for (let i = 0; i < text.length; i++) {
    const character = text[i]
    if (character === "'") isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (character === '(') depth++
    else if (character === ')') depth--
    else if (character === ',' && depth === 0) {
      found.push(text.slice(start, i).trim())
      start = i + 1
    }
  }
  return [...found, text.slice(start).trim()]
}

function withoutName(member: string): string {
  return member.replace(/^\w+ /, '')
}

/** Returns the bytes of some values of a column of this type. Throws a TypeError if the type does not describe the parts. */
export function chunksOfRanges(
  type: string,
  parts: readonly (GrowingBuffer | LowCardinality)[],
  ranges: RowRanges,
): Uint8Array[] {
  const reader = new PartsReader(parts)
  reader.read(layoutOf(type), ranges)
  if (!reader.isAtEnd) throw new TypeError(`a column of the type ${type} has more parts`)
  return reader.chunks
}

class PartsReader {
  readonly chunks: Uint8Array[] = []
  readonly #parts: readonly (GrowingBuffer | LowCardinality)[]
  #at = 0

  constructor(parts: readonly (GrowingBuffer | LowCardinality)[]) {
    this.#parts = parts
  }

  get isAtEnd(): boolean {
    return this.#at === this.#parts.length
  }

  read(layout: Layout, ranges: RowRanges): void {
    if (layout.kind === 'all') {
      for (const member of layout.members) this.read(member, ranges)
      return
    }
    const part = this.#parts[this.#at++]
    if (layout.kind === 'dictionary') {
      if (!(part instanceof LowCardinality)) throw new TypeError('a dictionary is missing')
      this.chunks.push(...part.chunksOf(gatherFixed(part.indexes, 4, ranges)))
      return
    }
    if (!(part instanceof GrowingBuffer)) throw new TypeError('a buffer is missing')
    if (layout.kind === 'fixed') this.chunks.push(gatherFixed(part, layout.width, ranges))
    else if (layout.kind === 'string') this.chunks.push(gatherStrings(part, ranges))
    else {
      const elements = elementsOf(part, ranges)
      this.chunks.push(elements.offsets)
      for (const element of layout.elements) this.read(element, elements.ranges)
    }
  }
}

function gatherFixed({ bytes }: GrowingBuffer, width: number, { bounds, count }: RowRanges): Buffer {
  const gathered = Buffer.allocUnsafeSlow(count * width)
  let at = 0
  for (let i = 0; i < bounds.length; i += 2) {
    at += bytes.copy(gathered, at, (bounds[i] as number) * width, (bounds[i + 1] as number) * width)
  }
  return gathered
}

function gatherStrings({ bytes }: GrowingBuffer, { bounds }: RowRanges): Buffer {
  const positions = new Uint32Array(bounds.length)
  let size = 0
  let at = 0
  let row = 0
  for (let i = 0; i < bounds.length; i++) {
    at = skipStrings(bytes, at, (bounds[i] as number) - row)
    row = bounds[i] as number
    positions[i] = at
    if (i % 2 === 1) size += at - (positions[i - 1] as number)
  }
  const gathered = Buffer.allocUnsafeSlow(size)
  let end = 0
  for (let i = 0; i < positions.length; i += 2) {
    end += bytes.copy(gathered, end, positions[i] as number, positions[i + 1] as number)
  }
  return gathered
}

/** Returns the position after `count` strings. */
function skipStrings(bytes: Uint8Array, start: number, count: number): number {
  let at = start
  for (let i = 0; i < count; i++) {
    let byte = bytes[at++] as number
    if (byte < 0x80) {
      at += byte
      continue
    }
    let size = byte & 0x7f
    for (let factor = 0x80; byte >= 0x80; factor *= 0x80) {
      byte = bytes[at++] as number
      size += (byte & 0x7f) * factor
    }
    at += size
  }
  return at
}

/** Returns the offsets of some arrays, as if there were no others, and the ranges of their elements. */
function elementsOf({ view }: GrowingBuffer, { bounds, count }: RowRanges): { offsets: Buffer; ranges: RowRanges } {
  const offsets = Buffer.allocUnsafeSlow(count * 8)
  const target = new DataView(offsets.buffer)
  const elements = new Uint32Array(bounds.length)
  // Offsets have 32 bits: a batch has less than that many elements.
  const offsetAt = (row: number) => (row === 0 ? 0 : view.getUint32((row - 1) * 8, true))
  let total = 0
  let at = 0
  for (let i = 0; i < bounds.length; i += 2) {
    const first = offsetAt(bounds[i] as number)
    const last = offsetAt(bounds[i + 1] as number)
    for (let row = bounds[i] as number; row < (bounds[i + 1] as number); row++) {
      target.setUint32(at, total + view.getUint32(row * 8, true) - first, true)
      target.setUint32(at + 4, 0, true)
      at += 8
    }
    elements[i] = first
    elements[i + 1] = last
    total += last - first
  }
  return { offsets, ranges: { bounds: elements, count: total } }
}
