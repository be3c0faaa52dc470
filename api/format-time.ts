const NANOS_PER_SECOND = 1_000_000_000n

/** Unix nanoseconds as RFC 3339 in UTC with nine decimals, `2026-11-20T11:27:03.000000042Z`. */
export function rfc3339FromUnixNano(unixNano: bigint): string {
  const seconds = new Date(Number(unixNano / NANOS_PER_SECOND) * 1_000).toISOString().slice(0, 19)
  return `${seconds}.${String(unixNano % NANOS_PER_SECOND).padStart(9, '0')}Z`
}

/** A duration in milliseconds with its fraction; 0 for an end that lies before its start. */
export function millisecondsBetween(startUnixNano: bigint, endUnixNano: bigint): number {
  return endUnixNano <= startUnixNano ? 0 : Number(endUnixNano - startUnixNano) / 1e6
}
