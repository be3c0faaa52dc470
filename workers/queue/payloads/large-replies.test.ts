import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LARGE_BYTES, LargeReplies } from './large-replies.ts'

/** Feeds the bytes in pieces of these lengths, as a socket that writes to the target would. The rest comes in one piece. */
function pass(stream: Buffer, pieces: readonly number[] = []) {
  const forwarded: Buffer[] = []
  const values: Buffer[] = []
  const replies = new LargeReplies({
    take: length => Buffer.alloc(length),
    keep: value => values.push(value),
    forward: bytes => void forwarded.push(bytes),
  })
  for (let at = 0, turn = 0; at < stream.length; turn++) {
    const target = replies.target()
    const length = Math.min(pieces[turn] ?? Number.POSITIVE_INFINITY, target.length, stream.length - at)
    stream.copy(target, 0, at, at + length)
    replies.received(length)
    at += length
  }
  return { text: Buffer.concat(forwarded).toString('latin1'), values }
}

const bulk = (value: Buffer) => Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from('\r\n')])

const arbitraryReply = fc.oneof(
  fc
    .constantFrom('+OK\r\n', ':42\r\n', '$-1\r\n', '_\r\n', '*2\r\n', '%1\r\n', '-ERR $99999 is no length\r\n')
    .map(text => ({
      sent: Buffer.from(text),
      large: false,
    })),
  fc.constantFrom('$0\r\n\r\n', '$7\r\n$40000\r\r\n', '=8\r\ntxt:$9\r\n\r\n', '!3\r\nERR\r\n').map(text => ({
    sent: Buffer.from(text),
    large: false,
  })),
  fc
    .tuple(fc.integer({ min: LARGE_BYTES - 2, max: 3 * LARGE_BYTES }), fc.integer({ min: 0, max: 255 }))
    .map(([length, seed]) => {
      // The value itself contains CRLFs and what looks like a header.
      const value = Buffer.alloc(length, Buffer.concat([Buffer.from([seed]), Buffer.from('\r\n$70000\r\n')]))
      return { sent: bulk(value), large: length >= LARGE_BYTES, value }
    }),
)

it('takes large strings out of any replies, wherever they are split, and passes on the rest unchanged', () => {
  fc.assert(
    fc.property(
      fc.array(arbitraryReply, { maxLength: 12 }),
      fc.array(fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 70_000 })), { maxLength: 40 }),
      (replies, pieces) => {
        let large = 0
        const expected = replies.map(reply => (reply.large ? `:${++large}\r\n` : reply.sent.toString('latin1')))
        const { text, values } = pass(Buffer.concat(replies.map(reply => reply.sent)), pieces)
        expect(text).toBe(expected.join(''))
        const sent = replies.flatMap(reply => (reply.large && 'value' in reply ? [reply.value] : []))
        expect(values.length).toBe(sent.length)
        for (const [i, value] of values.entries()) expect(value.equals(sent[i] as Buffer)).toBe(true)
      },
    ),
  )
})

it('accepts a stream that is split at every byte', () => {
  const value = Buffer.alloc(LARGE_BYTES, '0123456789')
  const stream = Buffer.concat([Buffer.from('+OK\r\n'), bulk(Buffer.from('small')), bulk(value), Buffer.from(':1\r\n')])
  const { text, values } = pass(
    stream,
    Array.from({ length: stream.length }, () => 1),
  )
  expect(text).toBe('+OK\r\n$5\r\nsmall\r\n:1\r\n:1\r\n')
  expect(values.map(taken => taken.equals(value))).toEqual([true])
})

it('passes on bytes that it does not overwrite later', () => {
  const forwarded: Buffer[] = []
  const replies = new LargeReplies({ take: Buffer.alloc, keep: () => 1, forward: bytes => void forwarded.push(bytes) })
  for (const text of ['+first\r\n', '+other\r\n']) {
    replies.received(replies.target().write(text))
  }
  expect(forwarded.map(String)).toEqual(['+first\r\n', '+other\r\n'])
})
