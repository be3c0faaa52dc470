import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { freeBuffer } from '../../shared/memory/free-buffer.ts'
import { decompress } from './decompress.ts'

const LIMIT_BYTES = 64 * MIB
const COMPRESSORS = [
  ['gzip', 'gzip', gzipSync],
  ['deflate', 'deflate', deflateSync],
  ['deflate without its zlib header', 'deflate', deflateRawSync],
  ['zstd', 'zstd', zstdCompressSync],
] as const

describe.each(COMPRESSORS)('%s', (_name, encoding, compress) => {
  it('restores the compressed body', async () => {
    const body = Buffer.concat([randomBytes(10_000), Buffer.alloc(50_000, 'abc')])
    expect(await decompress(compress(body), encoding, LIMIT_BYTES)).toEqual({ ok: true, body })
    expect(await decompress(compress(Buffer.alloc(0)), encoding, LIMIT_BYTES)).toMatchObject({ ok: true })
  })

  it('accepts a body of exactly the limit and refuses one byte more without inflating all of it', async () => {
    const largest = await decompress(compress(Buffer.alloc(LIMIT_BYTES)), encoding, LIMIT_BYTES)
    expect(largest.ok && largest.body.length).toBe(LIMIT_BYTES)
    const bomb = compress(Buffer.alloc(2 * LIMIT_BYTES))
    const before = process.memoryUsage().rss
    expect(await decompress(bomb, encoding, LIMIT_BYTES)).toEqual({ ok: false, reason: 'too_large_decompressed' })
    expect(process.memoryUsage().rss - before).toBeLessThan(3 * LIMIT_BYTES)
  })

  it('refuses bodies that are cut short or not compressed', async () => {
    const whole = compress(randomBytes(1_000))
    for (const body of [whole.subarray(0, 500), Buffer.from('plain text, honestly'), Buffer.alloc(0)]) {
      expect(await decompress(body, encoding, LIMIT_BYTES)).toEqual({ ok: false, reason: 'bad_compression' })
    }
  })
})

/** Prints by how many bytes the memory of a process has grown when it has just decompressed what it reads. */
const MEASURE = `
  import { readFileSync } from 'node:fs'
  import { decompress } from '${import.meta.dirname}/decompress.ts'
  const compressed = readFileSync(0)
  await decompress(compressed.subarray(0, 100), process.argv[1], ${LIMIT_BYTES})
  const { rss } = process.memoryUsage
  const before = rss()
  const { body } = await decompress(compressed, process.argv[1], ${LIMIT_BYTES})
  console.log(body.length, rss() - before)
`

it.each(COMPRESSORS)('has a large body of %s in memory once', (_name, encoding, compress) => {
  const input = compress(Buffer.alloc(60 * MIB, 'a'))
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', MEASURE, encoding], { input }).toString()
  const [length, grownBytes] = printed.split(' ').map(Number)
  expect(length).toBe(60 * MIB)
  // Chunks that are collected and then joined would be 120 MiB.
  expect(grownBytes).toBeLessThan(95 * MIB)
})

it.each([
  ['large', 60 * MIB, LIMIT_BYTES],
  ['usual', 100_000, 4 * MIB],
])('gives the memory of a %s body back at once', async (_size, bytes, limitBytes) => {
  const arrayBuffers = () => process.memoryUsage().arrayBuffers
  const result = await decompress(gzipSync(Buffer.alloc(bytes, 'a')), 'gzip', limitBytes)
  const before = arrayBuffers()
  if (result.ok) freeBuffer(result.body)
  expect(before - arrayBuffers()).toBeGreaterThanOrEqual(bytes)
})

it.each([
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
] as const)('takes memory of the size that a body of %s states, once', async (encoding, compress) => {
  const body = Buffer.from(Array.from({ length: 20_000 }, (_, i) => `span ${i}`).join())
  const result = await decompress(compress(body), encoding, 4 * MIB)
  expect(result).toEqual({ ok: true, body })
  // One chunk is not joined with others, and is one byte larger.
  expect(result.ok && result.body.buffer.byteLength).toBe(body.length + 1)
})

it('takes little memory for a body that states far more than it has', async () => {
  const compressed = gzipSync(Buffer.alloc(100, 'a'))
  compressed.writeUInt32LE(3 * MIB, compressed.length - 4)
  const before = process.memoryUsage().arrayBuffers
  expect(await decompress(compressed, 'gzip', 4 * MIB)).toEqual({ ok: false, reason: 'bad_compression' })
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(MIB)
})

it('joins the frames of a large zstd stream', async () => {
  const parts = [Buffer.alloc(20 * MIB, 'a'), Buffer.alloc(20 * MIB, 'b'), Buffer.from('c')]
  const stream = Buffer.concat(parts.map(part => zstdCompressSync(part)))
  const result = await decompress(stream, 'zstd', LIMIT_BYTES)
  expect(result.ok && result.body.equals(Buffer.concat(parts))).toBe(true)
})

it('refuses a zstd stream of more frames than any encoder makes', async () => {
  const empty = zstdCompressSync(Buffer.alloc(0))
  const before = process.threadCpuUsage()
  const many = Buffer.concat(Array(200_000).fill(empty))
  expect(await decompress(many, 'zstd', LIMIT_BYTES)).toEqual({ ok: false, reason: 'bad_compression' })
  const { user, system } = process.threadCpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(1_000)
})

it('decompresses all frames of zstd and all members of gzip', async () => {
  const parts = [randomBytes(1_000), Buffer.alloc(300_000, 'abc'), randomBytes(10)]
  const body = Buffer.concat(parts)
  expect(await decompress(Buffer.concat(parts.map(part => gzipSync(part))), 'gzip', LIMIT_BYTES)).toEqual({
    ok: true,
    body,
  })
  const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])
  const frames = Buffer.concat([skippable, ...parts.map(part => zstdCompressSync(part))])
  expect(await decompress(frames, 'zstd', LIMIT_BYTES)).toEqual({ ok: true, body })
  expect(await decompress(frames, 'zstd', body.length - 1)).toMatchObject({ reason: 'too_large_decompressed' })
  for (const rest of [frames.subarray(0, -1), Buffer.concat([frames, Buffer.from('garbage!')]), skippable]) {
    expect(await decompress(rest, 'zstd', LIMIT_BYTES)).toEqual({ ok: false, reason: 'bad_compression' })
  }
})

/** Takes all memory that the process may have, then prints what becomes of a good body. */
const WITHOUT_MEMORY = `
  import { readFileSync } from 'node:fs'
  import { decompress } from '${import.meta.dirname}/decompress.ts'
  const compressed = readFileSync(0)
  await decompress(compressed.subarray(0, 100), process.argv[1], 1_000).catch(() => {})
  const taken = []
  try {
    for (;;) taken.push(Buffer.allocUnsafeSlow(16 * ${MIB}).fill(1))
  } catch {}
  console.log(await decompress(compressed, process.argv[1], ${LIMIT_BYTES}).then(({ reason }) => reason, ({ code }) => code))
`

it.each(COMPRESSORS)('does not call a good body of %s invalid while memory is short', (_name, encoding, compress) => {
  const input = compress(Buffer.alloc(60 * MIB, 'a'))
  const script = ['--input-type=module', '-e', WITHOUT_MEMORY, encoding]
  const limited = ['-c', 'ulimit -d 500000; exec "$0" "$@"', process.execPath, ...script]
  expect(execFileSync('sh', limited, { input }).toString().trim()).toBe('PENSTOCK_TRANSIENT')
})
