import { z } from 'zod'

/** Any JSON object, by its keys. A request with one must be of bounded depth (`parseJsonBody`). */
export const jsonObjectSchema = z.record(z.string(), z.json())

/** Enough to find a misspelling by; the names are the client's, of any number and length. */
const NAMED_MAX = 3
const NAME_MAX_CHARACTERS = 64

/**
 * A body that takes these fields and no others, for operations where a misspelled field that is lost in silence would do
 * harm. Its message names fields that are too many.
 */
export function exactObject<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: issue => {
      if (issue.code !== 'unrecognized_keys') return 'must be a JSON object'
      const names = issue.keys.slice(0, NAMED_MAX).map(key => JSON.stringify(key.slice(0, NAME_MAX_CHARACTERS)))
      return `must not have the field ${names.join(', ')}`
    },
  })
}
