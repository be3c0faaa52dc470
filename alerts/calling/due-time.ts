import type { AlertRule } from '../../schemas/records/alerts.ts'
import { DAY_MS, MINUTE_MS } from '../../schemas/units.ts'

/** The parts of a rule that decide when it sends. */
type Times = Pick<AlertRule, 'everyMinutes' | 'quietHours'>

/** Returns when events that are found now may be sent, in Unix ms: now, or later. `lastMs` is when the rule sent last. */
export function dueTime({ everyMinutes = 0, quietHours }: Times, nowMs: number, lastMs: number | undefined): number {
  const restedMs = lastMs === undefined ? nowMs : Math.max(nowMs, lastMs + everyMinutes * MINUTE_MS)
  return quietHours === undefined ? restedMs : endOfQuiet(quietHours, restedMs)
}

/** Returns the end of the quiet hours at a time, or the time itself. Both ends are the same: never quiet. */
function endOfQuiet({ from, to, zone }: NonNullable<Times['quietHours']>, atMs: number): number {
  const [begins, ends] = [minutesOf(from), minutesOf(to)]
  const minute = minutesOf(timeIn(zone, atMs))
  const isQuiet = begins <= ends ? minute >= begins && minute < ends : minute >= begins || minute < ends
  if (!isQuiet) return atMs
  const left = (ends - minute) * MINUTE_MS
  return atMs - (atMs % MINUTE_MS) + (left > 0 ? left : left + DAY_MS)
}

function minutesOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5))
}

/** Returns the time of the day in a zone, `07:00`. */
function timeIn(zone: string, atMs: number): string {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  return format.format(atMs)
}
