import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readEventTime } from './read-event-time.ts'

/** Reads the time from the whole line, and from pieces of all sizes, which must give the same. */
function timeOf(text: string): number | undefined {
  const line = Buffer.from(text)
  const timeMs = readEventTime([line])
  for (const size of [1, 3, 16]) {
    const pieces = Array.from({ length: Math.ceil(line.length / size) }, (_, i) =>
      line.subarray(i * size, (i + 1) * size),
    )
    expect(readEventTime(pieces)).toBe(timeMs)
  }
  return timeMs
}

it('reads the same time as JSON.parse from any event', () => {
  const value = fc.jsonValue({ maxDepth: 3 })
  const key = fc.oneof(
    fc.constantFrom('timestamp', 'type', 'data', 'timestam', 'timestamp1', '"timestamp":5', '\\'),
    fc.string(),
  )
  const time = fc.oneof(fc.integer(), fc.double({ min: -8e15, max: 8e15, noNaN: true }), fc.constant(1e300), value)
  fc.assert(
    fc.property(fc.dictionary(key, fc.oneof(time, value)), fc.constantFrom(undefined, 1, '\t'), (event, space) => {
      const text = JSON.stringify(event, null, space).replaceAll('\n', ' ')
      const said = JSON.parse(text).timestamp
      const isTime = typeof said === 'number' && Math.abs(said) <= 8.64e15
      expect(timeOf(text)).toBe(isTime ? said : undefined)
    }),
    { numRuns: 2_000 },
  )
})

it('reads the last of two timestamps, and ignores nested ones', () => {
  expect(timeOf('{"timestamp":1,"data":{"timestamp":2},"timestamp":3}')).toBe(3)
  expect(timeOf('{"timestamp":1,"timestamp":"2"}')).toBeUndefined()
  expect(timeOf('{"data":[{"timestamp":2}],"a":"timestamp"}')).toBeUndefined()
  expect(timeOf('{"data":"\\\\\\"timestamp\\":4","timestamp" : 1700000000000.25 }')).toBe(1_700_000_000_000.25)
})
