import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../schemas/units.ts'

/**
 * A time range as the address has it. `from` is relative to now (`now-24h`), an instant in RFC 3339, or `all`; `to` is an instant,
 * or absent for now.
 */
export interface TimeRange {
  readonly from: string
  readonly to?: string
}

const ALL = 'all'
/** The range of a page whose address names none. */
export const LAST_DAY: TimeRange = { from: 'now-24h' }
/** The range of a page about one thing, of which everything is shown unless a time is chosen. */
export const ANY_TIME: TimeRange = { from: ALL }

/** Ranges to choose from. */
export const CHOICES = [
  ['now-15m', 'Last 15 minutes'],
  ['now-1h', 'Last hour'],
  ['now-6h', 'Last 6 hours'],
  ['now-24h', 'Last 24 hours'],
  ['now-7d', 'Last 7 days'],
  ['now-30d', 'Last 30 days'],
  [ALL, 'Any time'],
] as const

const UNITS: Readonly<Record<string, readonly [ms: number, name: string]>> = {
  m: [MINUTE_MS, 'minute'],
  h: [HOUR_MS, 'hour'],
  d: [DAY_MS, 'day'],
}
const RELATIVE = /^now-(\d{1,4})([mhd])$/
/** The longest range of lists that need a beginning. */
const BOUND_MS = 31 * DAY_MS

/** Returns the range of an address, or another one if it names none that is valid. */
export function rangeOf(query: URLSearchParams, otherwise: TimeRange = LAST_DAY): TimeRange {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? undefined]
  const isInstant = (text: string) => /^\d{4}-.*Z$/.test(text) && !Number.isNaN(Date.parse(text))
  if (from === ALL || RELATIVE.test(from)) return { from }
  if (!isInstant(from) || (to !== undefined && !isInstant(to))) return otherwise
  return to === undefined ? { from } : { from, to }
}

/** Returns when a range begins, in Unix ms, or undefined if it has no beginning. */
function beginOf({ from }: TimeRange, nowMs: number): number | undefined {
  const [, count, unit = ''] = RELATIVE.exec(from) ?? []
  if (count !== undefined) return nowMs - Number(count) * (UNITS[unit]?.[0] ?? 0)
  return from === ALL ? undefined : Date.parse(from)
}

/** The range of an address as a part of a key of `useLoad`. */
export function rangeKey(query: URLSearchParams): string {
  return `${query.get('from')} ${query.get('to')}`
}

/** Returns the parameters of the API for the range of an address. With `isBounded`, one without a beginning is of 31 days. */
export function timesOf(
  query: URLSearchParams,
  { isBounded = false, otherwise = LAST_DAY, nowMs = Date.now() } = {},
): { $from?: string; to?: string } {
  const range = rangeOf(query, otherwise)
  const fromMs = beginOf(range, nowMs) ?? (isBounded ? nowMs - BOUND_MS : undefined)
  return {
    ...(fromMs !== undefined && { $from: new Date(fromMs).toISOString() }),
    ...(range.to !== undefined && { to: range.to }),
  }
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

/** Returns a range in words, which `parseTyped` reads. */
export function describeRange(range: TimeRange, now = new Date()): string {
  const chosen = CHOICES.find(([from]) => from === range.from)
  if (chosen !== undefined) return chosen[1]
  const [, count, unit = ''] = RELATIVE.exec(range.from) ?? []
  if (count !== undefined) return `Last ${count} ${UNITS[unit]?.[1]}${count === '1' ? '' : 's'}`
  const from = new Date(range.from)
  const begins = `${dayText(from, now)} ${clockText(from)}`
  if (range.to === undefined) return `Since ${begins}`
  const to = new Date(range.to)
  const isSameDay = from.toDateString() === to.toDateString()
  return `${begins} – ${isSameDay ? '' : `${dayText(to, now)} `}${clockText(to)}`
}

const two = (value: number) => String(value).padStart(2, '0')

function dayText(date: Date, now: Date): string {
  const day = `${MONTHS[date.getMonth()]} ${date.getDate()}`
  return date.getFullYear() === now.getFullYear() ? day : `${day} ${date.getFullYear()}`
}

function clockText(date: Date): string {
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`
  return date.getSeconds() === 0 ? clock : `${clock}:${two(date.getSeconds())}`
}

/** Returns the zone of the times that the console shows, such as `Europe/Berlin, UTC+1`. */
export function zoneText(now = new Date()): string {
  const minutes = -now.getTimezoneOffset()
  const size = Math.abs(minutes)
  const offset = `${minutes < 0 ? '−' : '+'}${Math.floor(size / 60)}${size % 60 === 0 ? '' : `:${two(size % 60)}`}`
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  return minutes === 0 ? timeZone : `${timeZone}, UTC${offset}`
}
