import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'

const MB = 1_000_000

/** Prints how much smaller the heap is after a large one was needed for a moment and then prepared for load. */
const TRIM = `
  import { prepareHeap } from '${import.meta.dirname}/heap.ts'
  let needed = Array.from({ length: 1_000_000 }, (_, i) => ({ i }))
  const before = process.memoryUsage().heapTotal
  needed = undefined
  prepareHeap()
  console.log(before - process.memoryUsage().heapTotal)
`

it('gives back memory that the heap needs no more', () => {
  const freed = execFileSync(process.execPath, ['--input-type=module', '-e', TRIM]).toString()
  expect(Number(freed)).toBeGreaterThan(20 * MB)
})
