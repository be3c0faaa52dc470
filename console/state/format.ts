import { DAY_S, HOUR_S } from '../../schemas/units.ts'

/**
 * Formats a time for people, in their zone: the time of day for today, else with the date, and with the year if that is another
 * one. It always has seconds; `isPrecise` adds milliseconds.
 */
export function formatTime(iso: string, { now = Date.now(), isPrecise = false } = {}): string {
  const date = new Date(iso)
  const today = new Date(now)
  const isToday = date.toDateString() === today.toDateString()
  const isThisYear = date.getFullYear() === today.getFullYear()
  const { whole, precise } = isToday ? TIME : isThisYear ? DATE_TIME : YEAR_TIME
  return (isPrecise ? precise : whole).format(date)
}

const TIME = formatsOf({})
const DATE_TIME = formatsOf({ month: 'short', day: 'numeric' })
const YEAR_TIME = formatsOf({ year: 'numeric', month: 'short', day: 'numeric' })

function formatsOf(date: Intl.DateTimeFormatOptions) {
  const whole = { ...date, hour: '2-digit', minute: '2-digit', second: '2-digit' } as const
  return {
    whole: new Intl.DateTimeFormat(undefined, whole),
    precise: new Intl.DateTimeFormat(undefined, { ...whole, fractionalSecondDigits: 3 }),
  }
}

/** Formats how long ago a time is: `5 min ago`. */
export function formatAge(iso: string, now = Date.now()): string {
  const seconds = Math.round((now - Date.parse(iso)) / 1_000)
  if (seconds < 5) return 'just now'
  return `${formatSeconds(seconds)} ago`
}

/** Formats a number of seconds with its largest unit. */
export function formatSeconds(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1_000)} ms`
  if (seconds < 100) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / HOUR_S)} h`
  return `${Math.round(seconds / DAY_S)} d`
}

/** Formats nanoseconds with three digits: `1.23 ms`. */
export function formatNanos(nanos: number): string {
  const size = Math.abs(nanos)
  if (size < 1_000) return `${nanos} ns`
  if (size < 1_000_000) return `${digits(nanos / 1_000)} µs`
  if (size < 1_000_000_000) return `${digits(nanos / 1_000_000)} ms`
  if (size < 60_000_000_000) return `${digits(nanos / 1_000_000_000)} s`
  return formatSeconds(nanos / 1_000_000_000)
}

function digits(value: number): string {
  return String(Number(value.toPrecision(3)))
}

const COUNT = new Intl.NumberFormat()

/** Formats a count with the separators of the language. */
export function formatCount(count: number): string {
  return COUNT.format(count)
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** Formats bytes with three digits: `1.23 MB`. */
export function formatBytes(bytes: number): string {
  const unit = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), BYTE_UNITS.length - 1)
  return `${digits(bytes / 1_000 ** unit)} ${BYTE_UNITS[unit]}`
}

/** Returns the sum of counts. */
export function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

/** Returns a count with its noun: `1 span`, `2 spans`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`
}

/** Returns the ISO time of Unix nanoseconds, with milliseconds. */
export function isoOfNanos(nanos: string): string {
  return new Date(Number(BigInt(nanos) / 1_000_000n)).toISOString()
}
