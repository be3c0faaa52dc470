import { z } from 'zod'
import type { TracePosition } from '../../../clickhouse/queries/traces/search/select-trace-candidates.ts'
import { decodeCursor, digestOf, encodeCursor, type ListIdentity, OTHER_LIST } from '../../http/cursor.ts'
import type { Outcome } from '../../http/outcome.ts'
import { SPAN_NANO_MAX } from './search-filter.ts'

const unixNano = z
  .string()
  .regex(/^\d{1,19}$/)
  .refine(digits => BigInt(digits) <= SPAN_NANO_MAX)

const cursorSchema = z
  .tuple([z.string(), unixNano, z.string().regex(/^[0-9a-f]{32}$/)])
  .transform(([list, atUnixNano, traceId]) => ({ list, atUnixNano, traceId }))

/** Encodes the position after which the next page of a list begins. */
export function encodeTraceCursor(list: ListIdentity, { atUnixNano, traceId }: TracePosition): string {
  return encodeCursor([digestOf(list), atUnixNano, traceId])
}

/** Decodes a cursor, and refuses one that another list has returned. */
export function decodeTraceCursor(list: ListIdentity, text: string | undefined): Outcome<TracePosition | undefined> {
  const cursor = decodeCursor(cursorSchema, text)
  if (!cursor.ok || cursor.value === undefined) return cursor
  const { list: digest, atUnixNano, traceId } = cursor.value
  return digest === digestOf(list) ? { ok: true, value: { atUnixNano, traceId } } : OTHER_LIST
}
