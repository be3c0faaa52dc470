import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { invalid, type Outcome } from './outcome.ts'

/** The values that identify a list, such as its workspace and filters. A cursor is valid only in the list that returned it. */
export type ListIdentity = readonly unknown[]

/** Encodes the values that name the last entry of a page. The text is opaque to clients. */
export function encodeCursor(values: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url')
}

/** Decodes a cursor by the schema of its values. Returns the value undefined for an absent cursor: the first page. */
export function decodeCursor<S extends z.ZodType>(
  schema: S,
  text: string | undefined,
): Outcome<z.infer<S> | undefined> {
  if (text === undefined) return { ok: true, value: undefined }
  try {
    return { ok: true, value: schema.parse(JSON.parse(Buffer.from(text, 'base64url').toString())) }
  } catch {
    return INVALID_CURSOR
  }
}

/** The refusal of a cursor that no page has returned. */
export const INVALID_CURSOR = invalid('cursor is invalid: start again without it')

/** The refusal of a cursor that another list has returned. */
export const OTHER_LIST = invalid('cursor is for a list with other filters: start again without it')

/** Returns 72 bits of a digest. They only distinguish filters; a match grants no access. */
export function digestOf(list: ListIdentity): string {
  return createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, 12)
}

/** A page of a list, and the cursor of the next page, which is null on the last one. */
export interface Page<T> {
  readonly shown: readonly T[]
  readonly nextCursor: string | null
}

/** Cuts a page out of entries that were read with one more than `limit`: that one shows that there is a next page. */
export function cutPage<T>(found: readonly T[], limit: number, cursorOf: (last: T) => string): Page<T> {
  const last = found.length > limit ? found[limit - 1] : undefined
  return { shown: found.slice(0, limit), nextCursor: last === undefined ? null : cursorOf(last) }
}
