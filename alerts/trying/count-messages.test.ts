import { expect, it } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../schemas/units.ts'
import { countMessages } from './count-messages.ts'

const NOON_MS = Date.UTC(2026, 10, 21, 12)
const minutes = (...all: number[]) => all.map(minute => NOON_MS + minute * MINUTE_MS)
const quietHours = { from: '22:00', to: '07:00', zone: 'UTC' }

it('counts a message for each time of events, and one for fifty events of the same time', () => {
  expect(countMessages({}, [])).toBe(0)
  expect(countMessages({}, minutes(0, 0, 1, 5))).toBe(3)
  expect(countMessages({}, Array(51).fill(NOON_MS))).toBe(2)
})

it('joins what comes while a rule rests', () => {
  expect(countMessages({ everyMinutes: 10 }, minutes(0, 1, 9, 10))).toBe(3)
  expect(countMessages({ everyMinutes: 10 }, minutes(0, 1, 5, 9))).toBe(2)
  // A message is sent when ten minutes are over, and the rule rests again from then on: 0, 10, 20 and 30.
  expect(countMessages({ everyMinutes: 10 }, minutes(0, 1, 12, 25))).toBe(4)
})

it('joins what comes in quiet hours, and counts what still waits', () => {
  const night = [NOON_MS + 11 * HOUR_MS, NOON_MS + 14 * HOUR_MS]
  expect(countMessages({ quietHours }, [NOON_MS, ...night])).toBe(2)
  expect(countMessages({ quietHours }, [...night, NOON_MS + DAY_MS])).toBe(2)
})

it('keeps the latest thousand events that wait', () => {
  expect(countMessages({ quietHours }, Array(5_000).fill(NOON_MS + 11 * HOUR_MS))).toBe(20)
})
