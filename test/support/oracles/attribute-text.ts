import type { AnyValue, Attributes, HrTime } from '@opentelemetry/api'
import type { AttributeType } from '../../../clickhouse/queries/attributes/attribute-columns.ts'

/** Returns the attributes of the SDK as a `Map(String, String)` must contain them. */
export function textsOf(attributes: Attributes): Record<string, string> {
  return Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, textOf(value)]))
}

/** Returns the types of the attributes as the array beside the map must contain them. */
export function typesOf(attributes: Attributes): AttributeType[] {
  return Object.values(attributes).map(typeOf)
}

/** Returns an attribute value of the SDK as text. */
export function textOf(value: AnyValue): string {
  if (value === null || value === undefined) return ''
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Returns the type number of an attribute value of the SDK. */
export function typeOf(value: AnyValue): AttributeType {
  if (value === null || value === undefined) return 'empty'
  if (value instanceof Uint8Array) return 'bytes'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'object') return 'kvlist'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'double'
  return typeof value === 'boolean' ? 'bool' : 'string'
}

/** Returns a time of the SDK in nanoseconds. */
export function nanos([seconds, nanoseconds]: HrTime): bigint {
  return BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds)
}
