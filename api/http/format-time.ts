import { DAY_MS } from '../../schemas/units.ts'

const NANOS_PER_SECOND = 1_000_000_000n

/** Formats Unix nanoseconds as RFC 3339 in UTC with nine decimals: `2026-11-20T11:27:03.000000042Z`. */
export function rfc3339FromUnixNano(unixNano: bigint): string {
  const second = new Date(Number(unixNano / NANOS_PER_SECOND) * 1_000).toISOString().slice(0, 19)
  return `${second}.${String(unixNano % NANOS_PER_SECOND).padStart(9, '0')}Z`
}

const EARLIEST_MS = Date.parse('0000-01-01T00:00:00.000Z')
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Formats Unix milliseconds as RFC 3339 in UTC. A time beyond its four-digit years, from a wrong clock, becomes the nearest
 * one.
 */
export function rfc3339FromUnixMs(unixMs: number): string {
  return new Date(Math.min(Math.max(unixMs, EARLIEST_MS), LATEST_MS)).toISOString()
}

/** Returns a duration in milliseconds with its fraction, or 0 if the end is before the start. */
export function millisecondsBetween(startUnixNano: bigint, endUnixNano: bigint): number {
  return endUnixNano <= startUnixNano ? 0 : Number(endUnixNano - startUnixNano) / 1e6
}

/** Returns a time of RFC 3339 in Unix nanoseconds, which are at least 0 and at most `max`. */
export function unixNanoOf(time: string, max: bigint): bigint {
  const nano = BigInt(Date.parse(time)) * 1_000_000n
  if (nano < 0n) return 0n
  return nano < max ? nano : max
}

/** Returns the UTC day of a text like `2026-11-21`, or of a time, in days since 1970. */
export function dayOf(at: string | number): number {
  return Math.floor((typeof at === 'string' ? Date.parse(at) : at) / DAY_MS)
}

/** Returns the text of a day. */
export function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}
