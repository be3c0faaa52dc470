import { beforeEach, expect, it } from 'vitest'
import { CommitRest } from './commit-rest.ts'

const ONE = { frames: 1, bytes: 100 }
let now: number
let clients: number
let rest: CommitRest

beforeEach(() => {
  now = 1_000
  clients = 64
  rest = new CommitRest(
    () => clients,
    10_000,
    () => now,
  )
})

it('a client alone never waits', () => {
  rest.began()
  now += 2
  expect(rest.msBefore(ONE)).toBe(0)
})

it('commits begin 10 ms apart while several clients send', () => {
  rest.began()
  rest.overlapped()
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
  rest.overlapped()
  const isSent = (group: typeof ONE) => rest.isEnough(group) && rest.msBefore(group) === 0
  expect(isSent({ frames: 7, bytes: 9_999 })).toBe(false)
  expect(isSent({ frames: 8, bytes: 100 })).toBe(true)
  expect(isSent({ frames: 1, bytes: 10_000 })).toBe(true)
  clients = 10_000
  expect(isSent({ frames: 15, bytes: 100 })).toBe(false)
  expect(isSent({ frames: 16, bytes: 100 })).toBe(true)
  clients = 8
  expect(isSent(ONE)).toBe(true)
})

it('a rest that brings no request is the last one for 100 ms', () => {
  rest.began()
  rest.overlapped()
  rest.ended(1)
  expect(rest.msBefore(ONE)).toBe(10)
  rest.ended(0)
  expect(rest.msBefore(ONE)).toBe(0)
  now += 100
  rest.began()
  rest.overlapped()
  expect(rest.msBefore(ONE)).toBe(10)
})
