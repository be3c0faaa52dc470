import { z } from 'zod'
import { wholeNumber } from './fields.ts'

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
