import { z } from 'zod'
import { spanIdSchema, traceIdSchema } from './schemas.ts'

/** Why spans of a trace are missing, or may be. */
export const missingCauseSchema = z
  .enum([
    'in_flight',
    'dead_lettered',
    'refused',
    'expired',
    'erased',
    'cut',
    'not_received_from_other_service',
    'not_received_from_this_service',
    'unknown',
  ])
  .meta({
    id: 'MissingCause',
    description:
      'Why spans are missing, or may be. in_flight: accepted requests are not stored yet. dead_lettered, refused: requests of the workspace at the time of the trace were. expired: the trace begins where the retention ends, or spans of its time left with a shorter retention. erased: spans of its time were erased with a person or a session. cut: the response is limited. not_received_…: nothing was lost here, and the parent is of another service or of that of the child, as OTLP’s flags say.',
  })
/** Why spans of a trace are missing, or may be. */
export type MissingCause = z.infer<typeof missingCauseSchema>

const completenessShape = {
  state: z.enum(['complete', 'uncertain', 'incomplete']).meta({
    description:
      'complete: no parent is missing, everything that was accepted before `settledBefore` is included, and no request was lost at the time of the trace. uncertain: no parent is missing, but spans may be. incomplete: parents are missing, or the trace was cut.',
  }),
  settledBefore: z.iso
    .datetime()
    .optional()
    .meta({ description: 'Everything that was accepted before this time is included. Absent if it is not known.' }),
  reasons: z.array(missingCauseSchema).meta({ description: 'Why the trace is not complete. Empty if it is.' }),
}

/** How complete a trace is. */
export const completenessSchema = z
  .strictObject(completenessShape)
  .meta({ id: 'Completeness', description: 'How complete a trace is.' })
/** How complete a trace is. */
export type Completeness = z.infer<typeof completenessSchema>

/** A parent that is not retained in its trace. */
export const missingParentSchema = z
  .strictObject({
    spanId: spanIdSchema,
    firstChild: z.number().int().min(0).meta({ description: 'Index of the first span that names it.' }),
    childCount: z.number().int().min(1),
    isRemote: z.boolean().optional().meta({
      description: 'Whether the parent is of another service, as its first child states. Absent if it does not.',
    }),
    cause: missingCauseSchema,
  })
  .meta({ id: 'MissingParent', description: 'A parent that is not retained in its trace.' })

/** Response of GET /v3/traces/{traceId}/completeness. */
export const traceCompletenessSchema = z.strictObject({
  traceId: traceIdSchema,
  ...completenessShape,
  spanCount: z.number().int().min(1),
  rootCount: z.number().int().min(0),
  danglingParentCount: z.number().int().min(0),
  missingParents: z.array(missingParentSchema).meta({ description: 'The first 1,000.' }),
})
/** Response of GET /v3/traces/{traceId}/completeness. */
export type TraceCompleteness = z.infer<typeof traceCompletenessSchema>
