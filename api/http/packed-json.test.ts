import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { TransientError } from '../../shared/runtime/errors.ts'
import { acceptsGzip, packJson } from './packed-json.ts'

const signal = new AbortController().signal

it.each([
  ['gzip', true],
  ['GZIP', true],
  ['gzip, deflate, br', true],
  ['deflate, gzip;q=1.0, *;q=0.5', true],
  ['br;q=1, gzip;q=0.001', true],
  ['br, gzip ; q=0.5', true],
  ['gzip;q=0', false],
  ['gzip;q=0.000, br', false],
  ['xgzip', false],
  ['identity', false],
  [undefined, false],
])('whether %s accepts gzip: %s', (header, accepts) => {
  expect(acceptsGzip(header)).toBe(accepts)
})

it('packs the same text with and without compression, from pieces that share their memory', async () => {
  function* pieces() {
    const shared = Buffer.alloc(6)
    for (const text of ['{"é":', '"x', '"}']) yield shared.subarray(0, shared.write(text))
  }
  const plain = await packJson(pieces(), { acceptsGzip: false, plainLimitBytes: 12, signal })
  expect(Buffer.from(plain?.bytes ?? []).toString()).toBe('{"é":"x"}')
  const gzip = await packJson(pieces(), { acceptsGzip: true, plainLimitBytes: 0, signal })
  expect(gunzipSync(gzip?.bytes ?? Buffer.alloc(0)).toString()).toBe('{"é":"x"}')
})

it('makes no more of a text than its limit and a piece', async () => {
  let made = 0
  function* endless() {
    for (;;) {
      made++
      yield Buffer.alloc(1_000_000)
    }
  }
  expect(await packJson(endless(), { acceptsGzip: false, plainLimitBytes: 2_000_000, signal })).toBeUndefined()
  expect(made).toBeLessThan(6)
})

it('ends when its time is over', async () => {
  function* endless() {
    for (;;) yield Buffer.alloc(100_000)
  }
  const packing = packJson(endless(), { acceptsGzip: true, plainLimitBytes: 0, signal: AbortSignal.timeout(50) })
  await expect(packing).rejects.toThrow(TransientError)
})
