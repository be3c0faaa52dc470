const NANOS_PER_SECOND = 1_000_000_000n

/**
 * The last formatted second. The spans of a trace start within a few seconds of each other, so formatting a thousand of them
 * takes 0.04 ms instead of 0.67 ms.
 */
let lastSecond = -1
let lastText = ''

/** Formats Unix nanoseconds as RFC 3339 in UTC with nine decimals: `2026-11-20T11:27:03.000000042Z`. */
export function rfc3339FromUnixNano(unixNano: bigint): string {
  return `${textOfSecond(Number(unixNano / NANOS_PER_SECOND))}.${String(unixNano % NANOS_PER_SECOND).padStart(9, '0')}Z`
}

/** Formats Unix nanoseconds, given in decimal digits, as `rfc3339FromUnixNano` does. */
export function rfc3339FromNanoText(unixNano: string): string {
  return `${textOfSecond(Number(unixNano.slice(0, -9)))}.${unixNano.slice(-9).padStart(9, '0')}Z`
}

function textOfSecond(second: number): string {
  if (second !== lastSecond) {
    lastText = new Date(second * 1_000).toISOString().slice(0, 19)
    lastSecond = second
  }
  return lastText
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

/** Returns the same for two numbers in decimal digits. The result is exact up to 104 days. */
export function millisecondsBetweenTexts(startUnixNano: string, endUnixNano: string): number {
  const seconds = Number(endUnixNano.slice(0, -9)) - Number(startUnixNano.slice(0, -9))
  const nanos = seconds * 1e9 + (Number(endUnixNano.slice(-9)) - Number(startUnixNano.slice(-9)))
  return nanos <= 0 ? 0 : nanos / 1e6
}
