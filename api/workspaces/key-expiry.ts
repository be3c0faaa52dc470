import { rfc3339FromUnixMs } from '../http/format-time.ts'

/** When a key made now ends; null for one without end. */
export function keyExpiry(nowMs: number, secondsUntilExpiration: number | null): string | null {
  return secondsUntilExpiration === null ? null : rfc3339FromUnixMs(nowMs + secondsUntilExpiration * 1_000)
}
