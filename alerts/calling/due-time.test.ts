import fc from 'fast-check'
import { expect, it } from 'vitest'
import { dueTime } from './due-time.ts'

const at = (text: string) => Date.parse(text)
const NIGHT = { from: '22:00', to: '07:00', zone: 'Europe/Berlin' }

it.each([
  ['by day', '2026-11-21T12:00:30Z', '2026-11-21T12:00:30.000Z'],
  ['in the evening', '2026-11-21T21:15:30Z', '2026-11-22T06:00:00.000Z'],
  ['after midnight', '2026-11-22T01:00:00Z', '2026-11-22T06:00:00.000Z'],
  ['at the last minute', '2026-11-22T05:59:59Z', '2026-11-22T06:00:00.000Z'],
  ['at its end', '2026-11-22T06:00:00Z', '2026-11-22T06:00:00.000Z'],
])('waits for the end of quiet hours in their time zone: %s', (_, now, due) => {
  expect(new Date(dueTime({ quietHours: NIGHT }, at(now), undefined)).toISOString()).toBe(due)
})

it('waits as long as the rule rests, and then for the end of quiet hours', () => {
  const now = at('2026-11-21T20:50:00Z')
  expect(dueTime({ everyMinutes: 30 }, now, now - 10 * 60_000)).toBe(now + 20 * 60_000)
  expect(dueTime({ everyMinutes: 30 }, now, now - 40 * 60_000)).toBe(now)
  expect(dueTime({ everyMinutes: 30, quietHours: NIGHT }, now, now)).toBe(at('2026-11-22T06:00:00Z'))
})

it('is never before now, never more than a day after the rest, and not quiet then', () => {
  const time = fc
    .integer({ min: 0, max: 1_439 })
    .map(minute => `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`)
  const zone = fc.constantFrom('UTC', 'Asia/Kathmandu', 'Asia/Tokyo')
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), time, time, zone, (now, from, to, zone) => {
      const due = dueTime({ quietHours: { from, to, zone } }, now, undefined)
      expect(due).toBeGreaterThanOrEqual(now)
      expect(due - now).toBeLessThanOrEqual(86_400_000)
      expect(dueTime({ quietHours: { from, to, zone } }, due, undefined)).toBe(due)
    }),
  )
})
