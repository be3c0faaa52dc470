import { describe, expect, it } from 'vitest'
import { candidatesOf, spanOfFinding } from './finding-span.ts'
import type { SpanColumns } from './span-columns.ts'

const idOf = (index: number) => index.toString(16).padStart(16, '0')
const ids = Array.from({ length: 450 }, (_, i) => idOf(i))

describe('the span of a finding', () => {
  it('is looked for in spans with an error before others', () => {
    const columns = { count: 4, ids: ids.slice(0, 4).join('') } as SpanColumns
    expect(candidatesOf(columns, Int32Array.of(3, 1))).toEqual([1, 3, 0, 2].map(idOf))
  })

  it('is the first one that has it, however many requests that takes', async () => {
    const requests: number[] = []
    const read = async (wanted: readonly string[]) => {
      requests.push(wanted.length)
      const taken = wanted.slice(0, 150)
      const spans = taken.map(spanId => ({ spanId, findingIds: spanId >= idOf(320) ? ['fnd_a', 'fnd_b'] : ['fnd_b'] }))
      return { spans, rest: wanted.slice(150) }
    }
    expect(await spanOfFinding('fnd_a', ids, read)).toBe(idOf(320))
    expect(requests).toEqual([200, 200, 150])
    expect(await spanOfFinding('fnd_c', ids, read)).toBeUndefined()
    expect(await spanOfFinding('fnd_c', [], read)).toBeUndefined()
  })
})
