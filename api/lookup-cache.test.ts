import { expect, it } from 'vitest'
import { createLookupCache } from './lookup-cache.ts'

function setup(results: Record<string, string | Error>) {
  const loads: string[] = []
  let nowMs = 0
  const find = createLookupCache(
    async key => {
      loads.push(key)
      const result = results[key]
      if (result instanceof Error) throw result
      return result
    },
    { maxAgeMs: 10_000, absentMaxAgeMs: 1_000, maxEntries: 2, now: () => nowMs },
  )
  return { find, loads, pass: (ms: number) => (nowMs += ms), results }
}

it('loads once for concurrent callers and for as long as the value is young', async () => {
  const { find, loads, pass } = setup({ a: 'A' })
  expect(await Promise.all([find('a'), find('a')])).toEqual(['A', 'A'])
  pass(9_999)
  expect(await find('a')).toBe('A')
  expect(loads).toEqual(['a'])
  pass(1)
  await find('a')
  expect(loads).toEqual(['a', 'a'])
})

it('believes an absence for a shorter time', async () => {
  const { find, loads, pass, results } = setup({})
  expect(await find('a')).toBeUndefined()
  pass(999)
  await find('a')
  results.a = 'A'
  pass(1)
  expect(await find('a')).toBe('A')
  expect(loads).toHaveLength(2)
})

it('neither remembers a failure nor covers it with an old value', async () => {
  const { find, pass, results } = setup({ a: 'A' })
  await find('a')
  pass(10_000)
  results.a = new Error('redis is away')
  await expect(find('a')).rejects.toThrow('away')
  results.a = 'B'
  expect(await find('a')).toBe('B')
})

it('forgets the oldest when it is full', async () => {
  const { find, loads } = setup({ a: 'A', b: 'B', c: 'C' })
  for (const key of ['a', 'b', 'c', 'c', 'b', 'a']) await find(key)
  expect(loads).toEqual(['a', 'b', 'c', 'a'])
})
