/**
 * Reads Native blocks back into values, for tests and tools. String is a text of one character per byte (latin1), so
 * that invalid UTF-8 is not lost; FixedString is hex; 64-bit integers and DateTime64 are bigint; Enum8
 * is its number; Map is a list of pairs, since keys may repeat; Tuple is an object by the names of its elements.
 */
export type NativeValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | NativeValue[]
  | [NativeValue, NativeValue][]
  | { [name: string]: NativeValue }

/** Columns of a block with their values. */
interface NativeBlock {
  columns: { name: string; type: string; values: NativeValue[] }[]
  rows: number
}

/** Reads one block and throws unless it ends with the bytes. */
export function readBlock(bytes: Buffer): NativeBlock {
  const input = new Input(bytes)
  const block = nextBlock(input)
  if (input.at !== bytes.length) throw new RangeError(`${bytes.length - input.at} bytes follow the block`)
  return block
}

/** Reads the rows of all blocks. */
export function readRows(bytes: Buffer): Record<string, NativeValue>[] {
  const input = new Input(bytes)
  const rows = []
  while (input.at < bytes.length) rows.push(...rowsOf(nextBlock(input)))
  return rows
}

function nextBlock(input: Input): NativeBlock {
  const columnCount = input.varint()
  const rows = input.varint()
  const columns = []
  for (let i = 0; i < columnCount; i++) {
    const name = input.string()
    const type = input.string()
    columns.push({ name, type, values: readValues(input, type, rows) })
  }
  return { columns, rows }
}

/** Returns the rows of a block as objects by column name. */
export function rowsOf(block: NativeBlock): Record<string, NativeValue>[] {
  return Array.from({ length: block.rows }, (_, row) =>
    Object.fromEntries(block.columns.map(({ name, values }) => [name, values[row] as NativeValue])),
  )
}

class Input {
  at = 0
  private readonly bytes: Buffer

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  take(size: number): Buffer {
    if (this.at + size > this.bytes.length) throw new RangeError('the block ends too early')
    this.at += size
    return this.bytes.subarray(this.at - size, this.at)
  }

  varint(): number {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = this.take(1)[0] as number
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
  }

  string(): string {
    return this.take(this.varint()).toString('latin1')
  }

  u64(): number {
    return Number(this.take(8).readBigUInt64LE())
  }
}

function readValues(input: Input, type: string, count: number): NativeValue[] {
  const repeat = <T>(read: () => T): T[] => Array.from({ length: count }, read)
  const [name, parameters] = splitType(type)
  switch (name) {
    case 'UInt8':
    case 'Enum8':
      return repeat(() => input.take(1)[0] as number)
    case 'Bool':
      return repeat(() => input.take(1)[0] === 1)
    case 'UInt16':
      return repeat(() => input.take(2).readUInt16LE())
    case 'UInt32':
    case 'DateTime':
      return repeat(() => input.take(4).readUInt32LE())
    case 'UInt64':
      return repeat(() => input.take(8).readBigUInt64LE())
    case 'Int32':
      return repeat(() => input.take(4).readInt32LE())
    case 'Float64':
      return repeat(() => input.take(8).readDoubleLE())
    case 'Int64':
    case 'DateTime64':
      return repeat(() => input.take(8).readBigInt64LE())
    case 'FixedString':
      return repeat(() => input.take(Number(parameters[0])).toString('hex'))
    case 'String':
      return repeat(() => input.string())
    case 'LowCardinality':
      return readLowCardinality(input, count)
    case 'Nullable':
      return readNullables(input, parameters[0] as string, count)
    case 'Array':
      return readArrays(input, parameters[0] as string, count)
    case 'Map':
      return readMaps(input, parameters[0] as string, parameters[1] as string, count)
    case 'Tuple':
      return readTuples(input, parameters, count)
    default:
      throw new RangeError(`no reader for the type ${type}`)
  }
}

function readNullables(input: Input, type: string, count: number): NativeValue[] {
  const isNull = input.take(count)
  return readValues(input, type, count).map((value, i) => (isNull[i] === 1 ? null : value))
}

function readArrays(input: Input, type: string, count: number): NativeValue[][] {
  const ends = Array.from({ length: count }, () => input.u64())
  const values = readValues(input, type, ends.at(-1) ?? 0)
  return ends.map((end, i) => values.slice(ends[i - 1] ?? 0, end))
}

function readMaps(input: Input, keyType: string, valueType: string, count: number): [NativeValue, NativeValue][][] {
  const ends = Array.from({ length: count }, () => input.u64())
  const total = ends.at(-1) ?? 0
  const keys = readValues(input, keyType, total)
  const values = readValues(input, valueType, total)
  const pairs = keys.map((key, i): [NativeValue, NativeValue] => [key, values[i] as NativeValue])
  return ends.map((end, i) => pairs.slice(ends[i - 1] ?? 0, end))
}

function readTuples(input: Input, elements: string[], count: number): { [name: string]: NativeValue }[] {
  const columns = elements.map(element => {
    const space = element.indexOf(' ')
    return { name: element.slice(0, space), values: readValues(input, element.slice(space + 1), count) }
  })
  return Array.from({ length: count }, (_, row) =>
    Object.fromEntries(columns.map(({ name, values }) => [name, values[row] as NativeValue])),
  )
}

function readLowCardinality(input: Input, count: number): string[] {
  if (count === 0) return []
  if (input.u64() !== 1) throw new RangeError('the version of a LowCardinality column is not 1')
  const flags = input.u64()
  if ((flags & 0x200) === 0) throw new RangeError('a LowCardinality column has no keys of its own')
  const keyCount = input.u64()
  const keys = Array.from({ length: keyCount }, () => input.string())
  if (input.u64() !== count) throw new RangeError('a LowCardinality column has another number of rows')
  const width = 1 << (flags & 0xff)
  return Array.from({ length: count }, () => {
    const key = keys[input.take(width).readUIntLE(0, width)]
    if (key === undefined) throw new RangeError('an index of a LowCardinality column has no key')
    return key
  })
}

/** `Array(Tuple(a UInt8, b String))` is ['Array', ['Tuple(a UInt8, b String)']]. */
function splitType(type: string): [string, string[]] {
  const open = type.indexOf('(')
  if (open < 0) return [type, []]
  const parameters: string[] = []
  let depth = 0
  let from = open + 1
  for (let i = from; i < type.length; i++) {
    if (type[i] === '(') depth++
    if ((type[i] === ',' && depth === 0) || i === type.length - 1) {
      parameters.push(type.slice(from, i).trim())
      from = i + 1
    }
    if (type[i] === ')') depth--
  }
  return [type.slice(0, open), parameters]
}
