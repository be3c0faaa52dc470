/** Exponential from 250 ms to 10 s with up to half of it taken off at random, and never before the server said. */
export function retryDelayMs(attempt: number, retryAfterMs: number, random: () => number): number {
  const fullMs = Math.min(250 * 2 ** Math.min(attempt - 1, 10), 10_000)
  const jitterMs = fullMs * (1 - random() / 2)
  // Those who were told the same moment come back spread over the next second.
  return Math.round(retryAfterMs > 0 ? Math.max(jitterMs, retryAfterMs + random() * Math.min(1_000, fullMs)) : jitterMs)
}

/** What a `Retry-After` header asks for (RFC 9110 10.2.3: seconds or a date); 0 when it says nothing that can be read. */
export function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0
  const text = header.trim()
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  const date = /^[A-Za-z]{3}[A-Za-z]*, /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? 0 : Math.max(0, date - now)
}
