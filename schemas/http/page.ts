import { z } from 'zod'

/** A query parameter in decimal digits; the message names the range. */
export function wholeNumber(min: number, max: number) {
  const rule = `must be a whole number from ${min} to ${max}`
  return z
    .string({ error: issue => (issue.input === undefined ? 'is required' : rule) })
    .regex(/^\d{1,10}$/, rule)
    .transform(Number)
    .refine(value => value >= min && value <= max, rule)
    .meta({ type: 'integer', minimum: min, maximum: max })
}

/** How many entries a page may have. */
export function pageLimit(max: number, byDefault: number) {
  return wholeNumber(1, max)
    .default(byDefault)
    .meta({ description: 'How many entries at most.', default: byDefault, example: byDefault })
}

const PAGE_LIMIT_MAX = 100
const PAGE_LIMIT_DEFAULT = 50

export const cursorSchema = z
  .string()
  .max(512)
  .optional()
  .meta({ description: 'The `nextCursor` of the page before; absent for the first page.' })

/** The query of every list. */
export const pageQuerySchema = z.object({
  limit: pageLimit(PAGE_LIMIT_MAX, PAGE_LIMIT_DEFAULT),
  cursor: cursorSchema,
})
export type PageQuery = z.infer<typeof pageQuerySchema>

export const nextCursorSchema = z
  .string()
  .nullable()
  .meta({ description: 'What to send as `cursor` for the next page; null on the last.' })
