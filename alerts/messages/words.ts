import type { Measured, Person } from '../../schemas/http/alerts/events.ts'
import { oneLine } from './clean-text.ts'

const NAME_MAX_CHARACTERS = 100

/** Returns a name that a client or a member chose, in one line. */
export function shortName(name: string): string {
  return oneLine(name, NAME_MAX_CHARACTERS)
}

/** Returns how a user is called. Null is an operator. */
export function personName(person: Person | null): string {
  return person === null ? 'An operator' : shortName(person.name ?? '') || shortName(person.userId) || 'A member'
}

/** Returns a value or a threshold with its unit, such as `12.5 %`. */
export function quantity(value: number, { unit }: Pick<Measured, 'unit'>): string {
  return `${formatNumber(value)} ${shortName(unit)}`.trim()
}

/** Returns a number with at most two decimals, such as `1,234.57`, or as `1.2e-7` if that would hide it. */
export function formatNumber(value: number): string {
  const size = Math.abs(value)
  if (value !== 0 && (size >= 1e15 || size < 0.01)) return String(Number(value.toPrecision(3)))
  return value.toLocaleString('en-US', { maximumFractionDigits: 2 })
}

const UNITS = [
  { minutes: 1_440, name: 'day' },
  { minutes: 60, name: 'hour' },
  { minutes: 1, name: 'minute' },
]

/** Returns a duration in the largest unit that it is a whole number of, such as `5 minutes`, `1 hour`. */
export function duration(minutes: number): string {
  const unit = UNITS.find(candidate => minutes % candidate.minutes === 0) ?? { minutes: 1, name: 'minute' }
  return counted(minutes / unit.minutes, unit.name)
}

/** Returns a number with its noun, such as `1 day`, `3 days`. */
export function counted(number: number, noun: string, plural = `${noun}s`): string {
  return `${formatNumber(number)} ${number === 1 ? noun : plural}`
}

/** Returns a time of an event in UTC, to the minute. */
export function shownTime(instant: string): string {
  return `${instant.slice(0, 16).replace('T', ' ')} UTC`
}
