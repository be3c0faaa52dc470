import { z } from 'zod'

/** A query parameter in decimal digits; the message names the range. */
export function wholeNumber(min: number, max: number) {
  const rule = `must be a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^\d{1,10}$/, rule)
    .transform(Number)
    .refine(value => value >= min && value <= max, rule)
}

const PAGE_LIMIT_MAX = 100
const PAGE_LIMIT_DEFAULT = 50

/** The query of every list. */
export const pageQuerySchema = z.object({
  limit: wholeNumber(1, PAGE_LIMIT_MAX).default(PAGE_LIMIT_DEFAULT),
  /** The `nextCursor` of the page before. */
  cursor: z.string().max(512).optional(),
})
export type PageQuery = z.infer<typeof pageQuerySchema>

/** Null on the last page. */
export const nextCursorSchema = z.string().nullable()
