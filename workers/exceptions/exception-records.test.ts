import fc from 'fast-check'
import { expect, it } from 'vitest'
import { rounds } from '../../test/support/length.ts'
import { ExceptionRecords, RecordReader, TEXT } from './exception-records.ts'

const NAMES = Object.keys(TEXT) as (keyof typeof TEXT)[]
const text = fc.string({ unit: 'grapheme', maxLength: 200 })
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(Buffer.from)
const record = fc.record({
  ...{ source: fc.integer({ min: 1, max: 3 }), escaped: fc.boolean(), ids: bytes(32), variantId: bytes(16) },
  ...{
    timeLow: fc.nat(),
    timeHigh: fc.nat(),
    texts: fc.array(text, { minLength: NAMES.length, maxLength: NAMES.length }),
  },
  debugIds: fc.array(fc.tuple(text, text), { maxLength: 3 }).map(pairs => new Map(pairs)),
})
const AT = { traceIdStart: 0, spanIdStart: 16, parentSpanIdStart: 24 }
const FINDING = `fnd_${'a'.repeat(26)}`

it('records of exceptions are read as they were written', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 5 }), given => {
      const records = new ExceptionRecords()
      for (const { ids, texts, ...parts } of given) {
        const named = Object.fromEntries(NAMES.map((name, i) => [name, texts[i] ?? ''])) as Record<
          keyof typeof TEXT,
          string
        >
        const view = new DataView(ids.buffer, ids.byteOffset, ids.length)
        records.append({ ...parts, ...named, bytes: ids, view, ...AT, findingId: FINDING })
      }
      const reader = new RecordReader(Buffer.from(records.bytes.written()))
      const read: unknown[] = []
      while (reader.next()) {
        const part = (name: Parameters<typeof reader.at>[0], length: number) =>
          Buffer.from(reader.bytes.subarray(reader.at(name), reader.at(name) + length))
        read.push({
          source: reader.bytes[reader.at('source')],
          escaped: reader.bytes[reader.at('escaped')] === 1,
          ids: Buffer.concat([part('traceId', 16), part('spanId', 8), part('parentSpanId', 8)]),
          variantId: part('variantId', 16),
          timeLow: reader.view.getUint32(reader.at('occurredAt'), true),
          timeHigh: reader.view.getUint32(reader.at('occurredAt') + 4, true),
          texts: NAMES.map(name => reader.text(TEXT[name])),
          debugIds: reader.debugIds(),
        })
        expect(part('findingId', 30).toString()).toBe(FINDING)
      }
      expect(read).toEqual(given)
    }),
    { numRuns: rounds(1_000) },
  )
})

it('a record that is cut anywhere is refused, and nothing behind it is read', () => {
  fc.assert(
    fc.property(record, fc.nat(), ({ ids, texts, ...parts }, cut) => {
      const records = new ExceptionRecords()
      const named = Object.fromEntries(NAMES.map((name, i) => [name, texts[i] ?? ''])) as Record<
        keyof typeof TEXT,
        string
      >
      const view = new DataView(ids.buffer, ids.byteOffset, ids.length)
      records.append({ ...parts, ...named, bytes: ids, view, ...AT, findingId: FINDING })
      const whole = Buffer.from(records.bytes.written())
      const reader = new RecordReader(whole.subarray(0, 1 + (cut % (whole.length - 1))))
      expect(() => reader.next()).toThrow(RangeError)
    }),
    { numRuns: rounds(1_000) },
  )
})
