import { fileURLToPath } from 'node:url'
import protobuf from 'protobufjs'

/** The columns of a row that do not come from the payload. */
export interface RowContext {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly receivedAtMs: number
}

/** An attribute as protobufjs decodes it. */
export interface KeyValue {
  readonly key: string
  readonly value: AnyValue | null
}

/** An OTLP value as protobufjs decodes it. */
export interface AnyValue {
  /** The name of the field that is set. */
  readonly value: string | undefined
  readonly stringValue: string
  readonly intValue: Long
  readonly boolValue: boolean
  readonly doubleValue: number
}

/** A 64-bit integer of protobufjs. */
export interface Long {
  subtract(other: Long): Long
  toString(): string
}

const PROTO = fileURLToPath(new URL('../../schemas/otlp/proto/', import.meta.url))

/** Loads a message type from a file of the OpenTelemetry definitions. */
export function loadType(file: string, name: string): protobuf.Type {
  const root = new protobuf.Root()
  root.resolvePath = (_importer, target) => PROTO + target
  root.loadSync(file)
  return root.lookupType(name)
}

/** Formats a time for DateTime64, as seconds with nine decimals. */
export function toSeconds(unixNano: Long): string {
  const digits = unixNano.toString().padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}

/** Formats an id as ClickHouse stores it. */
export const toHex = (bytes: Buffer) => bytes.toString('hex')

/** Converts attributes to a Map(String, String). */
export function toMap(attributes: readonly KeyValue[]): Record<string, string> {
  const map: Record<string, string> = {}
  for (const { key, value } of attributes) map[key] = toText(value)
  return map
}

/** Converts a value to text. Arrays and lists of key-value pairs become JSON. */
export function toText(value: AnyValue | null): string {
  switch (value?.value) {
    case 'stringValue':
      return value.stringValue
    case 'intValue':
      return value.intValue.toString()
    case 'boolValue':
      return String(value.boolValue)
    case 'doubleValue':
      return String(value.doubleValue)
    case undefined:
      return ''
    default:
      return JSON.stringify(value)
  }
}
