const NANOS_PER_SECOND = 1_000_000_000n

/** The spans of a trace start within a few seconds of each other: 0.04 instead of 0.67 ms for a thousand of them. */
let lastSecond = -1
let lastText = ''

/** Unix nanoseconds as RFC 3339 in UTC with nine decimals, `2026-11-20T11:27:03.000000042Z`. */
export function rfc3339FromUnixNano(unixNano: bigint): string {
  return `${textOfSecond(Number(unixNano / NANOS_PER_SECOND))}.${String(unixNano % NANOS_PER_SECOND).padStart(9, '0')}Z`
}

/** The same of a number in decimal digits. */
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

/** Unix milliseconds as RFC 3339 in UTC. Its years have four digits: what a wrong clock says beyond them is the nearest such time. */
export function rfc3339FromUnixMs(unixMs: number): string {
  return new Date(Math.min(Math.max(unixMs, EARLIEST_MS), LATEST_MS)).toISOString()
}

/** A duration in milliseconds with its fraction; 0 for an end that lies before its start. */
export function millisecondsBetween(startUnixNano: bigint, endUnixNano: bigint): number {
  return endUnixNano <= startUnixNano ? 0 : Number(endUnixNano - startUnixNano) / 1e6
}

/** The same of two numbers in decimal digits; exact up to 104 days. */
export function millisecondsBetweenTexts(startUnixNano: string, endUnixNano: string): number {
  const seconds = Number(endUnixNano.slice(0, -9)) - Number(startUnixNano.slice(0, -9))
  const nanos = seconds * 1e9 + (Number(endUnixNano.slice(-9)) - Number(startUnixNano.slice(-9)))
  return nanos <= 0 ? 0 : nanos / 1e6
}
