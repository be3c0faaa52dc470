import { z } from 'zod'
import { filledText, SESSION_ID_MAX_CHARACTERS, textOf, uuidSchema } from '../fields.ts'
import { flagFilter, instantQuerySchema, isOrdered, orderedRange, surfaceFilter } from '../filters.ts'
import { findingIdSchema } from '../findings/schemas.ts'
import { cursorSchema, nextCursorSchema, pageLimit } from '../page.ts'

/** Id of a session, as the SDK generated it. */
export const sessionIdSchema = textOf(1, SESSION_ID_MAX_CHARACTERS)

/** Response to identify and heartbeat requests. */
export const sessionResponseSchema = z.strictObject({ ok: z.boolean() }).meta({ id: 'SessionResponse' })

/** Body of POST /v3/session (docs/api/sessions.md#heartbeat). Other fields are treated as in identify requests. */
export const heartbeatSchema = z
  .object(
    {
      sessionId: sessionIdSchema.meta({ description: 'The id of the session, as the SDK generated it.' }),
      deviceId: uuidSchema.nullish().meta({ description: 'Id of the device, as the SDK generated it.' }),
      visitorId: uuidSchema.nullish().meta({ description: 'Id of the visitor, as the SDK generated it.' }),
      fpHash: filledText.nullish().meta({ description: 'A fingerprint of the browser.' }),
    },
    'must be a JSON object',
  )
  .meta({ id: 'HeartbeatRequest' })

/** Most entries of each list of a session. All entries are counted. */
export const SESSION_LIST_MAX = 100

const instant = z.iso.datetime({ precision: 3 })
const instantNano = z.iso.datetime({ precision: 9 })
const count = z.number().int().min(0)

const device = {
  deviceId: z.string().optional(),
  visitorId: z.string().optional(),
  fpHash: z.string().optional(),
}

/** Content of one identify request (docs/api/sessions.md#identify). */
const sessionIdentitySchema = z
  .strictObject({
    identifier: z.string(),
    source: z.strictObject({ type: z.string(), name: z.string() }),
    ...device,
    avatar: z.string().optional(),
    email: z.string().optional(),
    name: z.string().optional(),
    country: z.string().optional(),
    traits: z.record(z.string(), z.unknown()),
    attachedAt: instant,
  })
  .meta({ id: 'SessionIdentity', description: 'The content of one identify request.' })
/** Content of one identify request. */
export type SessionIdentity = z.infer<typeof sessionIdentitySchema>

/** A device, identified by its id. Heartbeats without a device id are distinguished by visitor and fingerprint. */
const sessionDeviceSchema = z
  .strictObject({
    ...device,
    firstHeartbeatAt: instant,
    lastHeartbeatAt: instant,
    heartbeatCount: z.number().int().min(1),
  })
  .meta({
    id: 'SessionDevice',
    description:
      'A device, identified by its id. Heartbeats without a device id are distinguished by visitor and fingerprint.',
  })
/** A device of a session. */
export type SessionDevice = z.infer<typeof sessionDeviceSchema>

/** A trace of a session. */
const sessionTraceSchema = z
  .strictObject({
    id: z.string().regex(/^[0-9a-f]{32}$/),
    traceId: z.string().regex(/^[0-9a-f]{32}$/),
    startedAt: instantNano,
    endedAt: instantNano,
    spanCount: count.meta({ description: 'Number of spans as received: a span that was sent twice counts twice.' }),
    errorCount: count,
  })
  .meta({ id: 'SessionTrace' })
/** A trace of a session. */
export type SessionTrace = z.infer<typeof sessionTraceSchema>

/** A finding of a session. */
const sessionFindingSchema = z
  .strictObject({
    id: findingIdSchema,
    occurrenceCount: z.number().int().min(1).meta({ description: 'Number of occurrences in this session.' }),
    lastSeenAt: instantNano,
  })
  .meta({ id: 'SessionFinding' })
/** A finding of a session. */
export type SessionFinding = z.infer<typeof sessionFindingSchema>

/** Most missing numbers of a page that are listed. */
export const MISSING_NUMBERS_MAX = 20

/** A page that has numbered its requests (docs/api/requests.md#page-requests). */
const sessionPageSchema = z
  .strictObject({
    id: z.string(),
    receivedCount: count.meta({ description: 'Number of its requests that are stored or have a dead letter.' }),
    missingCount: count.meta({
      description:
        'Number of requests that are not, although the page has sent a later one. Some may still be on their way.',
    }),
    missing: z.array(count).max(MISSING_NUMBERS_MAX).meta({ description: 'The first of their numbers.' }),
  })
  .meta({ id: 'SessionPage', description: 'A page that has numbered its requests.' })
/** A page of a session that has numbered its requests. */
export type SessionPage = z.infer<typeof sessionPageSchema>

/** The recording of a session, in numbers. */
const sessionReplaySchema = z.strictObject({
  chunkCount: z.number().int().min(1),
  windowCount: z.number().int().min(1),
  eventCount: count,
  storedBytes: count,
  decompressedBytes: count,
  firstEventAt: instant.meta({ description: 'By the clock of the recording browser.' }),
  lastEventAt: instant,
})
/** The recording of a session, in numbers. */
export type SessionReplay = z.infer<typeof sessionReplaySchema>

/** When a session was first and last seen (docs/api/sessions.md#session-times). */
const timesSeen = {
  firstSeenAt: z.iso.datetime().meta({
    description: 'When the first of its spans and recorded events happened, or its first request arrived.',
  }),
  lastSeenAt: z.iso.datetime(),
  timesOfArrival: z.literal(true).optional().meta({
    description: 'Present if nothing of the session states its time: both times are those of arrivals.',
  }),
}

/**
 * Response of GET /v3/sessions/{sessionId}. Lists are ordered newest first, with at most SESSION_LIST_MAX entries each.
 */
export const sessionAnswerSchema = z.strictObject({
  session: z
    .strictObject({
      id: z.string(),
      // Not the component itself: in OpenAPI 3.0 a reference cannot be nullable.
      identity: z
        .strictObject(sessionIdentitySchema.shape)
        .nullable()
        .meta({ description: 'The identity received last.' }),
      identities: z.array(sessionIdentitySchema),
      identityCount: count,
      devices: z.array(sessionDeviceSchema),
      deviceCount: count,
      ...timesSeen,
      traces: z.array(sessionTraceSchema),
      traceCount: count,
      findings: z.array(sessionFindingSchema),
      findingCount: count,
      pages: z.array(sessionPageSchema),
      pageCount: count,
      replay: sessionReplaySchema.nullable(),
      truncated: z.boolean().meta({ description: 'Whether a list is shorter than its count.' }),
    })
    .meta({ id: 'Session', description: 'A session. Lists are ordered newest first, with at most 100 entries each.' }),
})
/** Response of GET /v3/sessions/{sessionId}. */
export type SessionAnswer = z.infer<typeof sessionAnswerSchema>

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
    user: z.string().min(1).max(1024).optional().meta({
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

const userText = z.string().meta({ description: `The first ${LISTED_TEXT_MAX} characters.` })

/** A session of a list. */
const listedSessionSchema = z
  .strictObject({
    id: z.string(),
    surfaceIds: z
      .array(z.string())
      .max(LISTED_SURFACES_MAX)
      .meta({ description: 'Surfaces that have sent identities, heartbeats or replay chunks of the session.' }),
    ...timesSeen,
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
