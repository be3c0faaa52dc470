import { SpanDetail } from '../../tables/span-details.ts'
import { type AttributeColumns, TYPES } from '../attributes/attribute-columns.ts'

/** An event of a span. Numbers of 64 bits are decimal digits. */
type EventColumns = readonly [time: string, name: string, attributes: AttributeColumns, dropped: number]

/** A link of a span. Ids are hex. */
type LinkColumns = readonly [
  traceId: string,
  spanId: string,
  traceState: string,
  flags: number,
  attributes: AttributeColumns,
  dropped: number,
]

/** The contents of the column `details` of a span. */
export interface SpanDetailColumns {
  traceState: string
  droppedAttributesCount: number
  readonly eventColumns: EventColumns[]
  droppedEventsCount: number
  readonly linkColumns: LinkColumns[]
  droppedLinksCount: number
}

/** Reads the column `details` of a span (clickhouse/tables/span-details.ts). `encoding` is that of its texts. */
export function readSpanDetails(details: Buffer, encoding: 'utf8' | 'latin1' = 'utf8'): SpanDetailColumns {
  const reader = new DetailReader(details, encoding)
  const columns: SpanDetailColumns = {
    traceState: '',
    droppedAttributesCount: 0,
    eventColumns: [],
    droppedEventsCount: 0,
    linkColumns: [],
    droppedLinksCount: 0,
  }
  while (!reader.isAtEnd) readEntry(reader, columns)
  return columns
}

function readEntry(reader: DetailReader, columns: SpanDetailColumns): void {
  const entry = reader.u8()
  switch (entry) {
    case SpanDetail.event: {
      const time = String(reader.u64())
      const dropped = reader.u32()
      columns.eventColumns.push([time, reader.text(), reader.attributes(), dropped])
      break
    }
    case SpanDetail.link: {
      const flags = reader.u32()
      const dropped = reader.u32()
      const ids = [reader.bytes().toString('hex'), reader.bytes().toString('hex')] as const
      columns.linkColumns.push([...ids, reader.text(), flags, reader.attributes(), dropped])
      break
    }
    case SpanDetail.traceState:
      columns.traceState = reader.text()
      break
    case SpanDetail.droppedAttributes:
      columns.droppedAttributesCount = reader.u32()
      break
    case SpanDetail.droppedEvents:
      columns.droppedEventsCount = reader.u32()
      break
    case SpanDetail.droppedLinks:
      columns.droppedLinksCount = reader.u32()
      break
    default:
      throw new RangeError(`the details of a span have an entry of the unknown kind ${entry}`)
  }
}

/** Reads numbers and strings one after the other. Throws a RangeError at the end of the bytes. */
export class DetailReader {
  readonly #bytes: Buffer
  readonly #encoding: BufferEncoding
  #at = 0

  constructor(bytes: Buffer, encoding: BufferEncoding) {
    this.#bytes = bytes
    this.#encoding = encoding
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#at++)
  }

  u32(): number {
    this.#at += 4
    return this.#bytes.readUInt32LE(this.#at - 4)
  }

  u64(): bigint {
    this.#at += 8
    return this.#bytes.readBigUInt64LE(this.#at - 8)
  }

  bytes(): Buffer {
    const size = this.#varint()
    if (this.#at + size > this.#bytes.length) throw new RangeError('the details of a span end within a text')
    this.#at += size
    return this.#bytes.subarray(this.#at - size, this.#at)
  }

  text(): string {
    return this.bytes().toString(this.#encoding)
  }

  attributes(): AttributeColumns {
    const count = this.#varint()
    const types = Array.from({ length: count }, () => TYPES[this.u8()] ?? 'empty')
    const keys = types.map(() => this.text())
    return [keys, types.map(() => this.text()), types]
  }

  #varint(): number {
    let value = 0
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.u8()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
  }
}
