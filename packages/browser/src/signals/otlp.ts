import type { Attributes, AttributeValue } from '../options.ts'

/** An OTLP value in JSON. */
type AnyValue =
  | { readonly stringValue: string }
  | { readonly boolValue: boolean }
  | { readonly doubleValue: number }
  | { readonly intValue: string }

/** An OTLP attribute in JSON. */
export interface KeyValue {
  readonly key: string
  readonly value: AnyValue
}

/** Longest text of an attribute, in characters. Stacks have this much too. */
const MAX_TEXT = 16_384

/** Returns attributes as OTLP has them in JSON. */
export function keyValues(attributes: Attributes): KeyValue[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValue(value) }],
  )
}

function anyValue(value: AttributeValue): AnyValue {
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  return { stringValue: cut(String(value)) }
}

/** Cuts a text to what the service keeps. A stack loses its middle. */
export function cut(text: string): string {
  if (text.length <= MAX_TEXT) return text
  const half = MAX_TEXT / 2 - 10
  return `${text.slice(0, half)}\n…\n${text.slice(-half)}`
}

/**
 * Returns the Unix time in ms at which the clock of `performance` would have been zero. `performance.timeOrigin` is not used,
 * because in browsers that clock stands while the computer sleeps.
 */
export function clockOrigin(): number {
  return Date.now() - performance.now()
}

/** Returns a time of the page in Unix ns as a decimal text. `ms` is a time of `performance.now()`. */
export function unixNano(ms: number, originMs: number = clockOrigin()): string {
  const unixMs = originMs + ms
  const whole = Math.floor(unixMs)
  return `${whole}${String(Math.round((unixMs - whole) * 1e6))
    .padStart(6, '0')
    .slice(0, 6)}`
}

/** Returns random hexadecimal digits for ids of traces and spans. */
export function randomHex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), byte => byte.toString(16).padStart(2, '0')).join('')
}
