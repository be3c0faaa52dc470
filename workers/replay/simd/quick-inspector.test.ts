import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { inspectChunk } from '../inspect-chunk.ts'
import { MAX_TEXT_BYTES } from './line-check.ts'
import { QuickInspector } from './quick-inspector.ts'

const quick = new QuickInspector()

/** Expects that a text is not proven, or that the exact inspection finds the same. */
async function expectSound(text: string | Buffer): Promise<void> {
  const body = Buffer.from(text as string)
  for (const [sent, encoding] of [
    [body, 'identity'],
    [gzipSync(body), 'gzip'],
  ] as const) {
    const found = quick.inspect(sent, encoding)
    if (found !== undefined) expect(found, String(text)).toEqual(await inspectChunk(sent, encoding))
  }
}

/** Expects that a text is proven. */
async function expectProven(text: string): Promise<void> {
  expect(quick.inspect(Buffer.from(text), 'identity'), text).toBeDefined()
  await expectSound(text)
}

const value = fc.jsonValue({ maxDepth: 4 })
const event = fc.oneof(
  fc.record(
    {
      timestamp: fc.oneof(
        fc.integer({ min: -1e15 + 1, max: 1e15 - 1 }),
        fc.constantFrom(1.5, -0.25, 8.64e15, 0, -0),
        value,
      ),
      type: fc.oneof(fc.integer({ min: 0, max: 5 }), value),
      data: value,
    },
    { requiredKeys: [] },
  ),
  fc.dictionary(fc.string({ unit: 'grapheme' }), value),
)

describe('finds what the exact inspection finds', () => {
  it('in events, wherever their blocks begin', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 6 }), fc.nat(70), async (events, shift) => {
        await expectSound(`{"a":"${'x'.repeat(shift)}"}\n${events.map(one => JSON.stringify(one)).join('\n')}`)
      }),
      { numRuns: 1_000 },
    )
  })

  it('in events with bytes replaced, removed and inserted', async () => {
    const put = fc.constantFrom(...'{}[]",:0123.-+eE \\/untrfalse\n\t\r\f\u001a\u0000é', '')
    const edit = fc.record({ at: fc.nat(), remove: fc.nat(2), put })
    await fc.assert(
      fc.asyncProperty(
        fc.array(event, { minLength: 1, maxLength: 3 }),
        fc.array(edit, { minLength: 1, maxLength: 2 }),
        fc.nat(70),
        async (events, edits, shift) => {
          let text = `{"a":"${'x'.repeat(shift)}"}\n${events.map(one => JSON.stringify(one)).join('\n')}`
          for (const { at, remove, put: added } of edits) {
            const start = at % text.length
            text = text.slice(0, start) + added + text.slice(start + remove)
          }
          await expectSound(text)
        },
      ),
      { numRuns: 5_000 },
    )
  })

  it('in random tokens', async () => {
    const token = fc.constantFrom(
      ...'{}[],:"\\\n012-+.eE',
      ...[
        'true',
        'false',
        'null',
        '"a"',
        '"a":',
        '{"a":',
        '"\\u00e9"',
        '"\\\\"',
        '1e5',
        '-0',
        '"é😀"',
        '},',
        ']}',
        '}\n{',
      ],
    )
    await fc.assert(
      fc.asyncProperty(fc.array(token, { maxLength: 30 }), fc.nat(70), async (tokens, shift) => {
        await expectSound(`{"a":"${'x'.repeat(shift)}"}\n{"b":${tokens.join('')}`)
      }),
      { numRuns: 10_000 },
    )
  })

  it('in random bytes within strings', async () => {
    const byte = fc.oneof(
      fc.constantFrom(0x22, 0x5c, 0x80, 0xbf, 0xc1, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0x1f, 0x7f),
      fc.nat(255),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(byte, { maxLength: 8 }), fc.nat(70), async (bytes, shift) => {
        await expectSound(Buffer.from([...Buffer.from(`{"${'x'.repeat(shift)}":"`), ...bytes, 0x22, 0x7d]))
      }),
      { numRuns: 5_000 },
    )
  })
})

describe('proves', () => {
  it('events as recorders write them, wherever their blocks begin', async () => {
    const node = { type: 2, tagName: 'div', attributes: { class: 'a "b" \\ \n' }, childNodes: [], id: 1 }
    const events = [
      { type: 4, data: { href: 'https://shop.example/', width: 1440, height: 900 }, timestamp: 1_700_000_000_000 },
      {
        type: 2,
        data: { node: { ...node, childNodes: [node, { ...node, textContent: 'ü😀'.repeat(50) }] } },
        timestamp: 1,
      },
      {
        type: 3,
        data: { source: 1, positions: [{ x: 1, y: 0, id: 7, timeOffset: -50 }], nextId: null },
        timestamp: 2.5,
      },
      { type: 3, data: { isChecked: false, userTriggered: true, float: 1.5e-7, nested: [[], {}, [[1, 2], [{}]]] } },
      {},
    ]
    for (let shift = 0; shift < 130; shift++) {
      const lines = [{ a: 'x'.repeat(shift) }, ...events].map(one => JSON.stringify(one))
      await expectProven(`${lines.join('\n')}\n`)
      await expectProven(`\n\n${lines.join('\n\n')}`)
    }
  })

  it('nothing with blanks between tokens, names with escapes, or times of 16 digits', () => {
    for (const text of ['{ }', '{"a": 1}', '{}\r\n', '{"t\\u0079pe":2}', '{"timestamp":1234567890123456}', '\n']) {
      expect(quick.inspect(Buffer.from(text), 'identity'), text).toBeUndefined()
    }
  })

  it('a text of the greatest length in one line, and no longer one', async () => {
    const line = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`
    await expectProven(line(MAX_TEXT_BYTES))
    expect(quick.inspect(Buffer.from(line(MAX_TEXT_BYTES + 1)), 'identity')).toBeUndefined()
  })

  it('nothing that states another size than it has', () => {
    const gzip = gzipSync('{}')
    expect(quick.inspect(gzip, 'gzip')).toMatchObject({ ok: true })
    expect(quick.inspect(Buffer.concat([gzip, gzip]), 'gzip')).toBeUndefined()
    expect(quick.inspect(gzipSync(Buffer.alloc(17_000_000, '{}\n')), 'gzip')).toBeUndefined()
    expect(quick.inspect(gzip.subarray(0, -1), 'gzip')).toBeUndefined()
  })
})
