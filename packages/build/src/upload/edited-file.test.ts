import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { inBlocks, readEdited } from './edited-file.ts'
import { edited } from './scan-source-map.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-edited-'))
})
afterAll(() => rm(directory, { recursive: true }))

it('reads a file with its edits in blocks of one size', async () => {
  const absolutePath = join(directory, 'a.map')
  const edit = fc.record({ start: fc.nat(600_000), length: fc.nat(1_000), text: fc.string() })
  await fc.assert(
    fc.asyncProperty(
      fc.nat(600_000),
      fc.array(edit, { maxLength: 4 }),
      fc.integer({ min: 1_000 }),
      async (size, drawn, block) => {
        const bytes = Buffer.alloc(size, 'abcdefg')
        await writeFile(absolutePath, bytes)
        let free = 0
        const edits = drawn
          .sort((a, b) => a.start - b.start)
          .flatMap(({ start, length, text }) => {
            if (start < free || start + length > size) return []
            free = start + length
            return [{ start, end: free, text }]
          })
        const blocks: Buffer[] = await Readable.from(
          inBlocks(readEdited({ absolutePath, sourceSize: size, edits }), block),
        ).toArray()
        expect(Buffer.concat(blocks).equals(Buffer.concat(edited(bytes, edits)))).toBe(true)
        expect(blocks.slice(0, -1).every(({ length }) => length === block)).toBe(true)
      },
    ),
    { numRuns: 30 },
  )
})
