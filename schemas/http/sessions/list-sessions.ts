import { z } from 'zod'
import { flagFilter, instantQuerySchema, isOrdered, orderedRange, surfaceFilter } from '../filters.ts'
import { cursorSchema, nextCursorSchema, pageLimit } from '../page.ts'

const LIMIT_MAX = 100
const LIMIT_DEFAULT = 20
/** Characters after which the identifier and the name of a user are cut in a list. */
export const LISTED_TEXT_MAX = 1_000
/** Most surfaces that an entry of a list names. */
export const LISTED_SURFACES_MAX = 20

/** Query of GET /v3/sessions. */
export const listSessionsQuerySchema = z
  .object({
    limit: pageLimit(LIMIT_MAX, LIMIT_DEFAULT),
    cursor: cursorSchema,
    user: z.string().min(1, 'must not be empty').max(1024, 'must have at most 1024 characters').optional().meta({
      description: 'Only sessions that were ever identified with this `identifier` or `email`.',
    }),
    surface: surfaceFilter.meta({
      description: 'Only sessions with identities, heartbeats or replay chunks from the surface with this id.',
    }),
    hasFinding: flagFilter.meta({ description: 'Only sessions in which a finding occurred.' }),
    hasReplay: flagFilter.meta({ description: 'Only sessions with replay chunks.' }),
    from: instantQuerySchema.optional().meta({ description: 'Only sessions that were seen at or after this time.' }),
    to: instantQuerySchema.optional().meta({ description: 'Only sessions that were seen before this time.' }),
  })
  .refine(isOrdered, orderedRange)
/** Query of GET /v3/sessions. */
export type ListSessionsQuery = z.infer<typeof listSessionsQuerySchema>

const instant = z.iso.datetime({ precision: 3 })
const count = z.number().int().min(0)
const userText = z.string().meta({ description: `The first ${LISTED_TEXT_MAX} characters.` })

/** A session of a list. */
export const listedSessionSchema = z
  .strictObject({
    id: z.string(),
    surfaceIds: z
      .array(z.string())
      .max(LISTED_SURFACES_MAX)
      .meta({ description: 'Surfaces that have sent identities, heartbeats or replay chunks of the session.' }),
    firstSeenAt: instant,
    lastSeenAt: instant,
    identity: z
      .strictObject({ identifier: userText, name: userText.optional(), email: z.string().optional() })
      .nullable()
      .meta({ description: 'The user of the identity that was received last.' }),
    traceCount: count,
    errorCount: count.meta({ description: 'Number of spans with the status ERROR, as received.' }),
    findingCount: count,
    replayChunkCount: count,
  })
  .meta({
    id: 'ListedSession',
    description: 'A session of a list. Times and counts are of all that is retained of it.',
  })
/** A session of a list. */
export type ListedSession = z.infer<typeof listedSessionSchema>

/** Response of GET /v3/sessions, last seen first. */
export const sessionsPageSchema = z
  .strictObject({ sessions: z.array(listedSessionSchema).max(LIMIT_MAX), nextCursor: nextCursorSchema })
  .meta({ id: 'SessionsPage' })
/** Response of GET /v3/sessions. */
export type SessionsPage = z.infer<typeof sessionsPageSchema>
