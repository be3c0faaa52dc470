import { z } from 'zod'
import { DEFAULT, wholeNumber } from './fields.ts'

/** Returns the schema of `limit`: the number of entries of a page. */
export function pageLimit(max: number, byDefault: number) {
  return wholeNumber(1, max)
    .default(byDefault)
    .meta({ description: 'The maximum number of entries.', [DEFAULT]: byDefault, example: byDefault })
}

const PAGE_LIMIT_MAX = 100
const PAGE_LIMIT_DEFAULT = 50

/** `cursor`: where a page begins. */
export const cursorSchema = z
  .string()
  .max(512)
  .regex(/^[A-Za-z0-9_-]+$/, 'is invalid: start again without it')
  .optional()
  .meta({ description: 'The `nextCursor` of the previous page; absent for the first page.' })

/** Query of every list. */
export const pageQuerySchema = z.object({
  limit: pageLimit(PAGE_LIMIT_MAX, PAGE_LIMIT_DEFAULT),
  cursor: cursorSchema,
})
/** Query of a list. */
export type PageQuery = z.infer<typeof pageQuerySchema>

/** `nextCursor`: where the next page begins. */
export const nextCursorSchema = z
  .string()
  .nullable()
  .meta({ id: 'NextCursor', description: 'The `cursor` of the next page; null on the last page.' })
