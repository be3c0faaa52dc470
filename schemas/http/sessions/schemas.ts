import { z } from 'zod'
import { text, textOf, uuidSchema } from '../fields.ts'
import { findingIdSchema } from '../findings/schemas.ts'

/** Most characters of the id of a session. */
export const SESSION_ID_MAX_CHARACTERS = 200

/** Id of a session, as the SDK generated it. */
export const sessionIdSchema = textOf(1, SESSION_ID_MAX_CHARACTERS)

/** Response to identify and heartbeat requests. */
export const sessionResponseSchema = z.strictObject({ ok: z.boolean() }).meta({ id: 'SessionResponse' })

/** Body of POST /v3/session (docs/api/sessions.md#heartbeat). Unknown fields are ignored. Null is not accepted. */
export const heartbeatSchema = z
  .object(
    {
      sessionId: sessionIdSchema.meta({ description: 'The id of the session, as the SDK generated it.' }),
      deviceId: uuidSchema.optional(),
      fpHash: text.optional().meta({ description: 'A fingerprint of the browser.' }),
      visitorId: uuidSchema.optional(),
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
export const sessionIdentitySchema = z
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
export const sessionDeviceSchema = z
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
export const sessionTraceSchema = z
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
export const sessionFindingSchema = z
  .strictObject({
    id: findingIdSchema,
    occurrenceCount: z.number().int().min(1).meta({ description: 'Number of occurrences in this session.' }),
    lastSeenAt: instantNano,
  })
  .meta({ id: 'SessionFinding' })
/** A finding of a session. */
export type SessionFinding = z.infer<typeof sessionFindingSchema>

/** The recording of a session, in numbers. */
export const sessionReplaySchema = z.strictObject({
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
      firstSeenAt: z.iso.datetime().meta({
        description: 'When its first request was received. If the session has only spans, their earliest time.',
      }),
      lastSeenAt: z.iso.datetime(),
      traces: z.array(sessionTraceSchema),
      traceCount: count,
      findings: z.array(sessionFindingSchema),
      findingCount: count,
      replay: sessionReplaySchema.nullable(),
      truncated: z.boolean().meta({ description: 'Whether a list is shorter than its count.' }),
    })
    .meta({ id: 'Session', description: 'A session. Lists are ordered newest first, with at most 100 entries each.' }),
})
/** Response of GET /v3/sessions/{sessionId}. */
export type SessionAnswer = z.infer<typeof sessionAnswerSchema>
