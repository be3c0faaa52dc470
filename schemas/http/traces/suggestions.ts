import { z } from 'zod'
import { READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { instantQuerySchema, isOrdered, orderedRange, serviceFilter } from '../filters.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageLimit } from '../page.ts'
import { callerProblems } from '../problem-sets.ts'

const LIMIT_MAX = 100
const LIMIT_DEFAULT = 20

/** Kinds of suggestions. */
const SUGGESTED = ['service', 'name', 'key', 'value'] as const

/** Query of GET /v3/suggestions. */
export const listSuggestionsQuerySchema = z
  .object({
    of: z.enum(SUGGESTED).meta({
      description:
        'Whether services, names of spans, keys of attributes of spans, or the values of one key are suggested.',
      example: 'value',
    }),
    key: z.string().min(1).max(1_024).optional().meta({
      description: 'The key whose values are suggested.',
      example: 'http.route',
    }),
    contains: z.string().max(1_024).optional().meta({
      description: 'Only texts that contain this, in upper or lower case.',
      example: 'CART',
    }),
    service: serviceFilter.meta({
      description: 'Only of spans of this `service.name`.',
      example: EXAMPLE.serviceName,
    }),
    from: instantQuerySchema.optional().meta({ description: 'Only of spans that started at this time or later.' }),
    to: instantQuerySchema.optional().meta({ description: 'Only of spans that started before this time.' }),
    limit: pageLimit(LIMIT_MAX, LIMIT_DEFAULT),
  })
  .refine(isOrdered, orderedRange)
  .refine(({ of, key }) => of !== 'value' || key !== undefined, {
    path: ['key'],
    error: 'is required for the values of a key',
  })

/** Response of GET /v3/suggestions. */
export const suggestionsSchema = z
  .strictObject({ suggestions: z.array(z.string()) })
  .meta({ id: 'Suggestions', description: 'Texts in alphabetical order.' })
/** Response of GET /v3/suggestions. */
export type Suggestions = z.infer<typeof suggestionsSchema>

/** Suggests texts for the filters of traces (docs/api/traces.md#suggestions). */
export const listSuggestions: PermittedOperation = {
  operationId: 'listSuggestions',
  method: 'GET',
  path: '/v3/suggestions',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'List services, names of spans, or keys and values of their attributes, to choose from',
  permission: 'org:telemetry:read',
  credentials: READER,
  parameters: { query: listSuggestionsQuerySchema },
  success: {
    status: 200,
    description: 'Texts to choose from.',
    contents: { 'application/json': { schema: suggestionsSchema, example: { suggestions: ['/cart'] } } },
  },
  problems: callerProblems,
}
