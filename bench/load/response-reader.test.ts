import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type ResponseHead, ResponseReader, UnreadableResponseError } from './response-reader.ts'

const response = fc.record({
  status: fc.constantFrom(200, 413, 429, 503),
  body: fc.string({ maxLength: 40 }),
  retryAfter: fc.option(fc.nat({ max: 60 }), { nil: undefined }),
  closes: fc.boolean(),
})

function textOf({ status, body, retryAfter, closes }: typeof response extends fc.Arbitrary<infer T> ? T : never) {
  const lines = [`HTTP/1.1 ${status} Text`, 'Date: today', `Content-Length: ${Buffer.byteLength(body)}`]
  if (retryAfter !== undefined) lines.push(`retry-after: ${retryAfter}`)
  if (closes) lines.push('Connection: close')
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

it('finds every response, however its bytes are split', () => {
  fc.assert(
    fc.property(
      fc.array(response, { maxLength: 8 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 90 })),
      (all, cuts) => {
        const heads: ResponseHead[] = []
        const reader = new ResponseReader(head => heads.push(head))
        const bytes = Buffer.concat(all.map(textOf))
        const reused = Buffer.alloc(90)
        for (let at = 0; at < bytes.length; ) {
          const size = bytes.copy(reused, 0, at, at + (cuts.next().value as number))
          reader.read(reused.subarray(0, size))
          at += size
        }
        expect(heads).toEqual(
          all.map(({ status, body, retryAfter, closes }) => ({
            status,
            contentLength: Buffer.byteLength(body),
            closes,
            retryAfterSeconds: retryAfter,
          })),
        )
      },
    ),
  )
})

it('rejects a response that it cannot parse', () => {
  const reader = () => new ResponseReader(() => {})
  for (const text of [
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked',
    'HTTP/1.1 100 Continue',
    'SSH-2.0',
    'HTTP/1.1 2000',
  ]) {
    expect(() => reader().read(Buffer.from(`${text}\r\n\r\n`))).toThrow(UnreadableResponseError)
  }
})
