import { DAY_MS } from '../../schemas/units.ts'
import type { TimeRange } from './time-range.ts'

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] as const
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const

const RELATIVE = /^(?:last |past )?(\d{1,4}) ?(m|min|mins|minutes?|h|hours?|d|days?|w|weeks?)$/
const ONE = /^(?:last |past )(minute|hour|day|week|month)$/
const WORDS: Readonly<Record<string, string>> = { minute: '1m', hour: '1h', day: '1d', week: '7d', month: '30d' }
const TIME = /(?:^| )(\d{1,2}):(\d{2})(?::(\d{2}))?$/
const NOW = 'now'

/**
 * Reads a range as people type it, in the zone of the browser: `last 3 h`, `yesterday 14:00 – 14:10`, `2026-11-30`,
 * `Nov 29 – Nov 30 08:00`, `since 14:00`. A range without an end is until now. Returns undefined for any other text, and for an end
 * that is not after the beginning.
 */
export function parseTyped(typed: string, now = new Date()): TimeRange | undefined {
  const text = typed.trim().toLowerCase().replaceAll(/\s+/g, ' ')
  if (/^(?:all|any time|all time)$/.test(text)) return { from: 'all' }
  const relative = relativeOf(text)
  if (relative !== undefined) return { from: `now-${relative}` }
  // A hyphen without blanks is within a date, or between two times of a day.
  const parts = text
    .replace(/^(?:since|from) /, '')
    .replace(/(:\d{2}) ?- ?(?=\d{1,2}:)/, '$1 – ')
    .split(/ ?(?:–|—|\.\.) ?| (?:-|to|until|till) /)
  const [first = '', second, ...more] = parts
  const begin = momentOf(first, now, startOfDay(now))
  if (begin === undefined || more.length > 0) return undefined
  if (second === undefined) return rangeFrom(begin, begin.isDay ? endOf(begin) : undefined, now)
  if (second === NOW) return rangeFrom(begin, undefined, now)
  const end = momentOf(second, now, startOfDay(begin.date))
  if (end === undefined) return undefined
  // From 23:00 to 01:00 ends on the next day.
  const isNextDay = end.isClock && end.date <= begin.date
  return rangeFrom(begin, isNextDay ? new Date(end.date.getTime() + DAY_MS) : endOf(end), now)
}

function relativeOf(text: string): string | undefined {
  const [, word] = ONE.exec(text) ?? []
  if (word !== undefined) return WORDS[word]
  const [, count = '', unit = ''] = RELATIVE.exec(text) ?? []
  if (count === '' || Number(count) === 0) return undefined
  const weeks = unit.startsWith('w') ? 7 : 1
  return `${Number(count) * weeks}${weeks === 7 ? 'd' : unit[0]}`
}

/** A moment, and whether it is a whole day, or was given without one. */
interface Moment {
  readonly date: Date
  readonly isDay: boolean
  readonly isClock: boolean
}

function endOf({ date, isDay }: Moment): Date {
  return isDay ? new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1) : date
}

function rangeFrom({ date }: Moment, end: Date | undefined, now: Date): TimeRange | undefined {
  const to = end !== undefined && end < now ? end : undefined
  if (date >= (end ?? now) || date >= now) return undefined
  return { from: date.toISOString(), ...(to && { to: to.toISOString() }) }
}

function startOfDay(date: Date): Date {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate())
}

/** Reads a moment: a day, a time of a day, or both. A time without a day is of `base`. */
function momentOf(text: string, now: Date, base: Date): Moment | undefined {
  if (/^\d{4}-\d{2}-\d{2}t/.test(text)) {
    const date = new Date(text.toUpperCase())
    return Number.isNaN(date.getTime()) ? undefined : { date, isDay: false, isClock: false }
  }
  const [matched = '', hours, minutes, seconds = '0'] = TIME.exec(text) ?? []
  const dayText = text.slice(0, text.length - matched.length).replace(/,$/, '')
  const day = dayText === '' && hours !== undefined ? base : dayOf(dayText, now)
  if (day === undefined) return undefined
  if (hours === undefined) return { date: day, isDay: true, isClock: false }
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined
  const date = new Date(day)
  date.setHours(Number(hours), Number(minutes), Number(seconds))
  return { date, isDay: false, isClock: dayText === '' }
}

/** Reads a day that is not in the future. A weekday is the last one before today; a date without a year is the last one. */
function dayOf(text: string, now: Date): Date | undefined {
  const today = startOfDay(now)
  const before = (days: number) => new Date(today.getFullYear(), today.getMonth(), today.getDate() - days)
  if (text === 'today') return today
  if (text === 'yesterday') return before(1)
  const weekday = WEEKDAYS.findIndex(name => text === name || (text.length === 3 && name.startsWith(text)))
  if (weekday >= 0) return before((today.getDay() - weekday + 7) % 7 || 7)
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? []
  if (year !== undefined) return dateOf(Number(year), Number(month) - 1, Number(day))
  const [, a = '', b = '', y] = /^([a-z]{3,9}|\d{1,2})\.? ([a-z]{3,9}|\d{1,2}),?(?: (\d{4}))?$/.exec(text) ?? []
  const [name, number] = /\d/.test(a) ? [b, a] : [a, b]
  const at = MONTHS.findIndex(start => name.startsWith(start))
  if (at < 0 || number === '') return undefined
  const found = dateOf(y === undefined ? now.getFullYear() : Number(y), at, Number(number))
  return found !== undefined && found > now && y === undefined
    ? dateOf(now.getFullYear() - 1, at, Number(number))
    : found
}

/** Returns a date that exists. */
function dateOf(year: number, month: number, day: number): Date | undefined {
  const date = new Date(year, month, day)
  return date.getMonth() === month && date.getDate() === day ? date : undefined
}
