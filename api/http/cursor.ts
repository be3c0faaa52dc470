import type { z } from 'zod'
import type { ProblemService } from '../../schemas/http/problems.ts'
import { invalid, type Outcome, type Refusal } from './outcome.ts'

/** Encodes the values that name the last entry of a page. The text is opaque to clients. */
export function encodeCursor(values: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url')
}

/** Decodes a cursor by the schema of its values. Returns the value undefined for an absent cursor: the first page. */
export function decodeCursor<S extends z.ZodType>(
  schema: S,
  text: string | undefined,
  service: ProblemService,
): Outcome<z.infer<S> | undefined> {
  if (text === undefined) return { ok: true, value: undefined }
  try {
    return { ok: true, value: schema.parse(JSON.parse(Buffer.from(text, 'base64url').toString())) }
  } catch {
    return invalidCursor(service)
  }
}

/** Refuses a cursor that no page has returned. */
export function invalidCursor(service: ProblemService): Refusal {
  return invalid('cursor is invalid: start again without it', service)
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
