import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LineError, readLines } from './read-lines.ts'

async function* inPieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let from = 0
  for (const size of sizes) {
    yield bytes.subarray(from, from + size)
    from += size
  }
  yield bytes.subarray(from)
}

async function linesOf(bytes: Uint8Array, sizes: readonly number[] = [], limitBytes = 1_000) {
  const lines: [number, string][] = []
  for await (const { number, text } of readLines(inPieces(bytes, sizes), limitBytes)) lines.push([number, text])
  return lines
}

it('yields the same lines however the text is split into pieces', async () => {
  const text = fc.array(fc.string({ unit: 'grapheme' })).map(lines => lines.join('\n'))
  const property = fc.asyncProperty(text, fc.array(fc.integer({ min: 0, max: 9 })), async (given, sizes) => {
    const expected = given
      .split('\n')
      .map((line, i) => [i + 1, Buffer.from(line).toString().trim()])
      .filter(([, line]) => line !== '')
    expect(await linesOf(Buffer.from(given), sizes)).toEqual(expected)
  })
  await fc.assert(property)
})

it('accepts lines up to the limit, with or without a newline at the end', async () => {
  for (const end of ['', '\n']) {
    expect(await linesOf(Buffer.from(`a\n${'x'.repeat(5)}${end}`), [3, 3], 5)).toEqual([
      [1, 'a'],
      [2, 'xxxxx'],
    ])
    const tooLong = linesOf(Buffer.from(`a\n${'x'.repeat(6)}${end}`), [3, 3], 5)
    await expect(tooLong).rejects.toThrow(new LineError('line 2: is longer than 5 bytes'))
  }
})

it('rejects bytes that are not UTF-8 with the number of the line', async () => {
  const bytes = Buffer.concat([Buffer.from('a\n'), Buffer.from([0xff, 0x0a])])
  await expect(linesOf(bytes)).rejects.toThrow('line 2: is not UTF-8')
})
