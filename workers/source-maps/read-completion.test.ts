import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { MAX_FILES, readCompletion } from './read-completion.ts'

const file = (path: string, more: object = {}) => ({ path, hash: 'h', debugId: '', chunkUrl: '', ...more })
const read = (body: unknown) => readCompletion(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))

it('reads files in order, and ignores unknown fields', async () => {
  const files = Array.from({ length: 2_500 }, (_, i) => file(`static/${i}.js.map`))
  const body = { files: files.map(entry => ({ ...entry, newer: [1] })), sourceFileCount: 7, tool: 'x' }
  expect(await read(body)).toEqual({ ok: true, completion: { files, sourceFileCount: 7 } })
})

it('accepts a completion without files', async () => {
  expect(await read({ files: [], sourceFileCount: 0 })).toMatchObject({ ok: true })
})

describe('refuses', () => {
  it.each([
    ['a text that is not JSON', 'files', /not JSON/],
    ['JSON that is not an object', '[]', /the body/],
    ['a body without files', { sourceFileCount: 0 }, /files/],
    ['files that are not a list', { files: {}, sourceFileCount: 0 }, /files/],
    ['a body without a count', { files: [] }, /sourceFileCount/],
    ['a negative count', { files: [], sourceFileCount: -1 }, /sourceFileCount/],
    [
      'an entry that lacks a field',
      { files: [{ path: 'a', hash: 'h', debugId: '' }], sourceFileCount: 0 },
      /files\[0\]\.chunkUrl/,
    ],
    ['a path that leaves the build', { files: [file('a'), file('../b')], sourceFileCount: 0 }, /files\[1\]\.path/],
    [
      'a path that is named twice',
      { files: [file('a'), file('b'), file('a')], sourceFileCount: 0 },
      /files\[2\]\.path "a" is named twice/,
    ],
  ])('%s', async (_name, body, message) => {
    expect(await read(body)).toEqual({ ok: false, message: expect.stringMatching(message) })
  })

  it('more files than the limit of a manifest', async () => {
    const body = `{"files":[${'0,'.repeat(MAX_FILES)}0],"sourceFileCount":0}`
    expect(await read(body)).toEqual({ ok: false, message: expect.stringMatching(/files/) })
  })

  it('with the first 20 of many faults', async () => {
    const answer = await read({ files: Array.from({ length: 1_000 }, () => file('/a')), sourceFileCount: 0 })
    expect(answer.ok ? '' : answer.message).toMatch(
      /^(files\[\d+\]\.path must [^;]+; ){19}files\[19\]\.path must [^;]+$/,
    )
  })

  it('16 MiB that would take half a gigabyte to parse, without parsing it', async () => {
    const body = Buffer.from(`[${'[],'.repeat(5_500_000)}1]`)
    const before = process.memoryUsage().heapUsed
    expect(await readCompletion(body)).toEqual({ ok: false, message: expect.stringMatching(/values/) })
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50 * MIB)
  })
})
