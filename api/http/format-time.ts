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
