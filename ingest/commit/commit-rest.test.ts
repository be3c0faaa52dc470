import { beforeEach, expect, it } from 'vitest'
import { CommitRest } from './commit-rest.ts'

const ONE = { frames: 1, bytes: 100 }
let now: number
let rest: CommitRest

beforeEach(() => {
  now = 1_000
  rest = new CommitRest(10_000, () => now)
})

/** Has requests arrive at once while a commit is in flight. */
function arrive(requests: number): void {
  for (let i = 0; i < requests; i++) rest.arrived(true)
}

it('commits never rest for up to 8 clients', () => {
  rest.began()
  for (let i = 0; i < 20; i++) {
    arrive(8)
    expect(rest.isEnough(ONE)).toBe(true)
    expect(rest.msBefore(ONE)).toBe(0)
    rest.began()
    rest.answered(8)
    now += 2
  }
})

it('commits begin 10 ms apart while several clients send', () => {
  rest.began()
  arrive(12)
  rest.answered(11)
  now += 2
  expect(rest.msBefore(ONE)).toBe(8)
  now += 8
  expect(rest.msBefore(ONE)).toBe(0)
  rest.began()
  now += 91
  rest.began()
  expect(rest.msBefore(ONE)).toBe(0)
})

it('a group that has enough is sent at once', () => {
  rest.began()
  const isSent = (group: typeof ONE) => rest.isEnough(group) && rest.msBefore(group) === 0
  arrive(64)
  expect(isSent({ frames: 15, bytes: 9_999 })).toBe(false)
  expect(isSent({ frames: 16, bytes: 100 })).toBe(true)
  expect(isSent({ frames: 1, bytes: 10_000 })).toBe(true)
})

it('clients that all wait are answered in two groups that alternate', () => {
  for (const clients of [9, 10, 24]) {
    now += 1_000
    arrive(clients)
    const half = Math.ceil(clients / 2)
    expect(rest.isEnough({ frames: half, bytes: 100 })).toBe(true)
    expect(rest.isEnough({ frames: half - 1, bytes: 100 })).toBe(false)
    rest.answered(clients)
  }
})

it('fewer clients than before are enough after 200 ms at most', () => {
  arrive(24)
  rest.answered(24)
  expect(rest.isEnough({ frames: 5, bytes: 100 })).toBe(false)
  for (let i = 0; i < 3; i++) {
    now += 100
    arrive(10)
    rest.answered(10)
  }
  expect(rest.isEnough({ frames: 5, bytes: 100 })).toBe(true)
})

it('a rest that brings no request is the last one for 100 ms', () => {
  rest.began()
  arrive(12)
  rest.ended(1)
  expect(rest.msBefore(ONE)).toBe(10)
  rest.ended(0)
  expect(rest.msBefore(ONE)).toBe(0)
  now += 100
  rest.began()
  arrive(1)
  expect(rest.msBefore(ONE)).toBe(10)
})
