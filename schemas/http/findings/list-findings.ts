import { z } from 'zod'
import { pageQuerySchema } from '../page.ts'

/** RFC 3339, with any offset; what is below a millisecond is left out. */
export const instantQuerySchema = z.iso.datetime({ offset: true, error: 'must be a time as RFC 3339 has it' })

const BEFORE = 'must be before "to"'

/** From before to, where both are given. */
export function isOrdered({ from, to }: { from?: string | undefined; to?: string | undefined }): boolean {
  return from === undefined || to === undefined || Date.parse(from) < Date.parse(to)
}

export const orderedRange = { path: ['from'], error: BEFORE }

/** The query of GET /v3/findings. */
export const listFindingsQuerySchema = pageQuerySchema
  .extend({
    surface: z
      .string()
      .min(1, 'must not be empty')
      .max(200, 'must have at most 200 characters')
      .optional()
      .meta({ description: 'Only those of the surface with this id.' }),
    service: z.string().max(1024, 'must have at most 1024 characters').optional().meta({
      description: 'Only those of this `service.name`, as it was sent; empty: of those that sent none.',
    }),
    from: instantQuerySchema.optional().meta({
      description: 'Only those with occurrences received from here on, by the clock of the service.',
    }),
    to: instantQuerySchema.optional().meta({ description: 'Only those with occurrences received before.' }),
    q: z.string().min(1, 'must not be empty').max(200, 'must have at most 200 characters').optional().meta({
      description:
        'In the first 1,000 characters of type and message of the occurrence that arrived last, whatever the case.',
    }),
  })
  .refine(isOrdered, orderedRange)
export type ListFindingsQuery = z.infer<typeof listFindingsQuerySchema>
