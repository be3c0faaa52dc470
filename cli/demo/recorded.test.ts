import { expect, it } from 'vitest'
import { loadRecorded, recordedVisit } from './recorded.ts'

const recorded = loadRecorded()

it('begins with a snapshot of the page, and lasts for about half a minute', () => {
  const [META, FULL_SNAPSHOT] = [4, 2]
  const types = recorded.events.slice(0, 2).map(({ type }) => type)
  expect(types).toEqual([META, FULL_SNAPSHOT])
  const lastMs = recorded.events.at(-1)?.timestamp ?? 0
  expect(lastMs).toBeGreaterThan(20_000)
  expect(lastMs).toBeLessThan(45_000)
  expect(recorded.checkoutMs).toBeLessThan(lastMs)
})

it('is cut into chunks whose times are in their order and begin at the given time', () => {
  const chunks = recordedVisit(recorded, 1_700_000_000_000)
  expect(chunks.map(({ segmentId }) => segmentId)).toEqual([...chunks.keys()])
  const times = chunks.flatMap(({ events }) => events.map(({ timestamp }) => timestamp))
  expect(times[0]).toBe(1_700_000_000_000)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(times).toHaveLength(recorded.events.length)
})

it('masks what a customer types', () => {
  const text = JSON.stringify(recorded.events)
  expect(text).not.toContain('Lindqvist')
  expect(text).toContain('"*************"')
  expect(text).not.toContain('4242')
})

it('has two releases with maps, whose minified names of the same functions differ', () => {
  expect(recorded.releases.map(({ version }) => version)).toEqual(['2.3.0', '2.4.0'])
  const stacks = Object.values(recorded.coupon).map(({ stack }) => stack.split('\n')[2])
  expect(new Set(stacks).size).toBe(2)
  for (const { map } of recorded.releases) expect(JSON.parse(map).sourcesContent.length).toBeGreaterThan(3)
})
