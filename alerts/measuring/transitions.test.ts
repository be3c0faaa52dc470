import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MINUTE_MS } from '../../schemas/units.ts'
import type { Reading } from './reading.ts'
import { type Condition, transitions } from './transitions.ts'

const measured = { what: 'value', value: 2, threshold: 1, unit: '', minutes: 1 }
const at = (minute: number) => minute * MINUTE_MS
const held = (service: string, ...minutes: number[]): Reading[] =>
  minutes.map(minute => ({ atMs: at(minute), subject: { service }, measured: { ...measured, value: minute } }))
const span = (from: number, to: number, step = 1) => ({ fromMs: at(from), toMs: at(to), stepMs: at(step) })
const minutesOf = (changes: readonly { atMs: number }[]) => changes.map(({ atMs }) => atMs / MINUTE_MS)

it('begins at once, and ends when it has not held for five minutes, with the last value that met it', () => {
  const { begun, ended, state } = transitions([], held('shop', 2, 3), span(0, 8), 0)
  expect([minutesOf(begun), minutesOf(ended), state]).toEqual([[2], [8], []])
  expect(ended[0]?.measured.value).toBe(3)
})

it('does not end and begin again while it holds now and then', () => {
  const { begun, ended, state } = transitions([], held('shop', 1, 5, 9, 13), span(0, 15), 0)
  expect([minutesOf(begun), minutesOf(ended), state.length]).toEqual([[1], [], 1])
})

it('begins once it has held at each instant of a time', () => {
  const { begun } = transitions([], held('shop', 1, 2, 4, 5, 6, 7), span(0, 7), 2 * MINUTE_MS)
  expect(minutesOf(begun)).toEqual([6])
})

it('does not count instants that were left out as a time in which it held', () => {
  const first = transitions([], held('shop', 1), span(0, 1), 5 * MINUTE_MS)
  const second = transitions(first.state, held('shop', 20), span(19, 20), 5 * MINUTE_MS)
  expect(second.begun).toEqual([])
  expect(second.state[0]?.sinceMs).toBe(at(20))
})

it('keeps a condition that began before a pause, and ends it at the first instant at which it does not hold', () => {
  const { state } = transitions([], held('shop', 1), span(0, 1), 0)
  expect(minutesOf(transitions(state, held('shop', 30), span(29, 30), 0).ended)).toEqual([])
  expect(minutesOf(transitions(state, [], span(29, 30), 0).ended)).toEqual([30])
})

it('measures the past at every fifth minute', () => {
  const { begun, ended } = transitions([], held('shop', 5, 10, 20), span(0, 25, 5), 0)
  expect([minutesOf(begun), minutesOf(ended)]).toEqual([
    [5, 20],
    [15, 25],
  ])
})

const minutes = fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 40 })
const arbitrary = fc.record({
  readings: fc.array(fc.tuple(fc.constantFrom('shop', 'cart', 'mail'), minutes), { maxLength: 3 }),
  cuts: fc.uniqueArray(fc.integer({ min: 1, max: 39 }), { maxLength: 10 }),
  hold: fc.integer({ min: 0, max: 6 }),
})

it('finds the same in one look as in any number of looks, and lets each condition begin and end in turn', () => {
  fc.assert(
    fc.property(arbitrary, ({ readings, cuts, hold }) => {
      const all = [...new Map(readings)].flatMap(([service, of]) => held(service, ...of))
      const once = transitions([], all, span(0, 40), at(hold))
      let state: readonly Condition[] = []
      const parts = { begun: [] as unknown[], ended: [] as unknown[] }
      const ends = [...cuts.toSorted((a, b) => a - b), 40]
      for (const [i, to] of ends.entries()) {
        const look = transitions(JSON.parse(JSON.stringify(state)), all, span(ends[i - 1] ?? 0, to), at(hold))
        parts.begun.push(...look.begun)
        parts.ended.push(...look.ended)
        state = look.state
      }
      expect(parts).toEqual({ begun: once.begun, ended: once.ended })
      expect(new Set(state)).toEqual(new Set(once.state))
      const changes = [...once.begun.map(one => ({ ...one, by: 1 })), ...once.ended.map(one => ({ ...one, by: -1 }))]
      for (const own of Map.groupBy(changes, ({ subject }) => subject.service).values()) {
        const signs = own.toSorted((a, b) => a.atMs - b.atMs).map(({ by }) => by)
        expect(signs).toEqual(signs.map((_, i) => (i % 2 === 0 ? 1 : -1)))
      }
      const stillHolds = once.state.filter(({ begunMs }) => begunMs !== undefined).length
      expect(once.begun.length - once.ended.length).toBe(stillHolds)
    }),
    { numRuns: 500 },
  )
})
