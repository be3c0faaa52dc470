import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { forEachConcurrently } from './for-each.ts'
import { pagesOf } from './pages.ts'

const items = Array.from({ length: 20 }, (_, i) => i)

it('runs every item once with its index, at most `concurrency` at a time', async () => {
  const seen: [number, number][] = []
  let running = 0
  let most = 0
  await forEachConcurrently(items, { concurrency: 4 }, async (item, index) => {
    most = Math.max(most, ++running)
    await nextTurn()
    running--
    seen.push([item, index])
  })
  expect(seen).toEqual(items.map(i => [i, i]))
  expect(most).toBe(4)
})

it('waits for the items in progress, continues with the rest, and rethrows the first failure', async () => {
  const done: number[] = []
  let failures = 0
  const run = forEachConcurrently(items, { concurrency: 4, onFailure: () => failures++ }, async item => {
    await nextTurn()
    if (item === 3 || item === 6) throw new Error(`item ${item}`)
    done.push(item)
  })
  await expect(run).rejects.toThrow('item 3')
  expect(done.length).toBe(18)
  expect(failures).toBe(1)
})

it('starts nothing after the first failure when it is asked to stop', async () => {
  const started: number[] = []
  const run = forEachConcurrently(items, { concurrency: 3, stopOnFailure: true }, async item => {
    started.push(item)
    await nextTurn()
    if (item === 1) throw new Error('failed')
  })
  await expect(run).rejects.toThrow('failed')
  expect(started.length).toBeLessThanOrEqual(4)
})

it('starts nothing once it is done', async () => {
  let started = 0
  await forEachConcurrently(items, { concurrency: 2, isDone: () => started >= 5 }, async () => {
    started++
    await nextTurn()
  })
  expect(started).toBe(5)
})

it('cuts a list into pages', () => {
  expect([...pagesOf([1, 2, 3, 4, 5], 2)]).toEqual([[1, 2], [3, 4], [5]])
  expect([...pagesOf([], 2)]).toEqual([])
})
