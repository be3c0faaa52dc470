import { DAY_MS, HOUR_MS } from '../schemas/units.ts'
import { PromqlError } from './promql-error.ts'

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
  y: 365 * DAY_MS,
}

/** Returns a duration such as `1h30m` in ms, or undefined if the text is none. */
export function durationMs(text: string): number | undefined {
  if (!/^(\d+(ms|[smhdwy]))+$/.test(text)) return undefined
  let total = 0
  for (const [, digits, unit] of text.matchAll(/(\d+)(ms|[smhdwy])/g)) {
    total += Number(digits) * (UNIT_MS[unit as string] as number)
  }
  return total
}

/** Returns the value of a number, which may be a duration in seconds. */
export function numberOf(literal: string): number {
  const text = literal.replaceAll('_', '').toLowerCase()
  const sign = text.startsWith('-') ? -1 : 1
  const plain = text.replace(/^[-+]\s*/, '')
  if (plain === 'inf') return sign * Number.POSITIVE_INFINITY
  if (plain === 'nan') return Number.NaN
  const duration = durationMs(plain)
  return sign * (duration === undefined ? Number(plain) : duration / 1_000)
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
}

/** Returns the text of a literal in double quotes, single quotes or backquotes, with the escapes of Go. */
export function textOfLiteral(literal: string): string {
  const quote = literal[0] as string
  if (literal.length < 2 || literal.at(-1) !== quote) throw new PromqlError('parse error: unterminated quoted string')
  const text = literal.slice(1, -1)
  if (quote === '`') return text
  return text.replaceAll(/\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[0-7]{3}|[\s\S])/gi, (_, escaped: string) => {
    const plain = ESCAPES[escaped]
    if (plain !== undefined) return plain
    const code = /^[xuU]/.test(escaped) ? Number.parseInt(escaped.slice(1), 16) : Number.parseInt(escaped, 8)
    if (escaped.length === 1 || !(code <= 0x10_ffff)) throw new PromqlError('parse error: unknown escape sequence')
    return String.fromCodePoint(code)
  })
}
