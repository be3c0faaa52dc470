import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { HOUR_MS, KIB, MIB } from '../../../schemas/units.ts'
import { READ_ALLOWANCE_MS, READ_BYTES_PER_SECOND, ReadPace } from './read-pace.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function setup() {
  const state = { tooSlow: false }
  const pace = new ReadPace(READ_ALLOWANCE_MS, Date.now, () => {
    state.tooSlow = true
  })
  /** Lets the client take `bytes` every `everyMs`, and returns the time at which it was too slow. */
  const readFor = (totalMs: number, bytes: number, everyMs: number): number | undefined => {
    for (let atMs = 0; atMs < totalMs; atMs += everyMs) {
      pace.wait()
      vi.advanceTimersByTime(everyMs)
      if (state.tooSlow) return atMs + everyMs
      pace.moved(bytes)
    }
    return undefined
  }
  return { pace, state, readFor }
}

it('lets a client read at the least speed for as long as it likes', () => {
  expect(setup().readFor(HOUR_MS, READ_BYTES_PER_SECOND, 1_000)).toBeUndefined()
})

it('lets a client pause for less than a minute after each megabyte', () => {
  expect(setup().readFor(HOUR_MS, 4 * MIB, 50_000)).toBeUndefined()
})

it('ends a response that moves only 64 KiB every nine seconds', () => {
  expect(setup().readFor(HOUR_MS, 64 * KIB, 9_000)).toBeLessThan(80_000)
})

it('ends a response that does not move for a minute', () => {
  expect(setup().readFor(120_000, 0, 120_000)).toBe(120_000)
})

it('does not count the time in which the client waits for the service', () => {
  const { pace, state, readFor } = setup()
  for (let piece = 0; piece < 20; piece++) {
    vi.advanceTimersByTime(50_000)
    pace.wait()
    vi.advanceTimersByTime(100)
    pace.moved(16 * KIB)
  }
  expect(state.tooSlow).toBe(false)
  expect(readFor(10_000, 0, 1_000)).toBeUndefined()
})

it('ends nothing once the response is complete', () => {
  const { pace, state } = setup()
  pace.wait()
  pace.end()
  vi.advanceTimersByTime(2 * READ_ALLOWANCE_MS)
  expect(state.tooSlow).toBe(false)
})
