import { z } from 'zod'
import { sessionIdSchema } from './schemas.ts'

/** Numbers of a page begin with 0 and end below this. A page that needs more takes a new id. */
const PAGE_SEQUENCE_END = 100_000

/**
 * The number of a request among those of a page that sends telemetry. A request with a number that the page has used already is a
 * repetition (docs/api/requests.md#page-requests).
 */
export const pageRequestSchema = z.object({
  session: sessionIdSchema.meta({ description: 'The session that the page belongs to.' }),
  page: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ and -')
    .meta({ description: 'A random id of the page in its session.' }),
  sequence: z
    .string()
    .regex(/^(0|[1-9][0-9]{0,4})$/, `must be a whole number from 0 to ${PAGE_SEQUENCE_END - 1}`)
    .transform(Number)
    .meta({
      description: 'The number of the request: 0, 1, 2 and so on for each page. A repetition has the same number.',
    }),
})
/** The number of a request among those of a page. */
export type PageRequest = z.output<typeof pageRequestSchema>

/** The query parameters of operations whose requests a page may number. All three are present, or none. */
export const pageRequestQuery = pageRequestSchema.partial()
