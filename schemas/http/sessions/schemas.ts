import { z } from 'zod'
import { text, textOf, uuidSchema } from '../fields.ts'
import { findingIdSchema } from '../findings/schemas.ts'

export const SESSION_ID_MAX_CHARACTERS = 200

/** A session's id as its SDK made it, wherever a body carries one. */
export const sessionIdSchema = textOf(1, SESSION_ID_MAX_CHARACTERS)

/** SessionResponse (spec 2.3). */
export const sessionResponseSchema = z.strictObject({ ok: z.boolean() }).meta({ id: 'SessionResponse' })

/** 4.2: POST /v3/session (spec 2.4). Unknown fields are ignored; null stands for nothing here. */
export const heartbeatSchema = z
  .object(
    {
      sessionId: sessionIdSchema.meta({ description: 'The id of the session, as its SDK made it.' }),
      deviceId: uuidSchema.optional(),
      fpHash: text.optional().meta({ description: 'A fingerprint of the browser.' }),
      visitorId: uuidSchema.optional(),
    },
    'must be a JSON object',
  )
  .meta({ id: 'HeartbeatRequest' })
export type Heartbeat = z.infer<typeof heartbeatSchema>

/** Entries of one list of a session; more are counted, not shown. */
export const SESSION_LIST_MAX = 100

const instant = z.iso.datetime({ precision: 3 })
const instantNano = z.iso.datetime({ precision: 9 })
const count = z.number().int().min(0)

const device = {
  deviceId: z.string().optional(),
  visitorId: z.string().optional(),
  fpHash: z.string().optional(),
}

/** What one identify request said (spec 2.2). */
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
  .meta({ id: 'SessionIdentity', description: 'What one identify request said.' })
export type SessionIdentity = z.infer<typeof sessionIdentitySchema>

/** A device by its id. Heartbeats that name no device are told apart by visitor and fingerprint. */
export const sessionDeviceSchema = z
  .strictObject({
    ...device,
    firstHeartbeatAt: instant,
    lastHeartbeatAt: instant,
    heartbeatCount: z.number().int().min(1),
  })
  .meta({
    id: 'SessionDevice',
    description: 'A device by its id. Heartbeats that name none are told apart by visitor and fingerprint.',
  })
export type SessionDevice = z.infer<typeof sessionDeviceSchema>

export const sessionTraceSchema = z
  .strictObject({
    id: z.string().regex(/^[0-9a-f]{32}$/),
    traceId: z.string().regex(/^[0-9a-f]{32}$/),
    startedAt: instantNano,
    endedAt: instantNano,
    spanCount: count.meta({ description: 'Spans as they were received: one that came twice counts twice.' }),
    errorCount: count,
  })
  .meta({ id: 'SessionTrace' })
export type SessionTrace = z.infer<typeof sessionTraceSchema>

export const sessionFindingSchema = z
  .strictObject({
    id: findingIdSchema,
    occurrenceCount: z.number().int().min(1).meta({ description: 'How often the finding occurred in this session.' }),
    lastSeenAt: instantNano,
  })
  .meta({ id: 'SessionFinding' })
export type SessionFinding = z.infer<typeof sessionFindingSchema>

export const sessionReplaySchema = z.strictObject({
  chunkCount: z.number().int().min(1),
  windowCount: z.number().int().min(1),
  eventCount: count,
  storedBytes: count,
  decompressedBytes: count,
  firstEventAt: instant.meta({ description: 'By the clock of the recording browser.' }),
  lastEventAt: instant,
})
export type SessionReplay = z.infer<typeof sessionReplaySchema>

/** GET /v3/sessions/{sessionId}. The lists are the newest first, with at most SESSION_LIST_MAX entries each. */
export const sessionAnswerSchema = z.strictObject({
  session: z
    .strictObject({
      id: z.string(),
      // Not the component itself: in OpenAPI 3.0 a reference cannot be nullable.
      identity: z
        .strictObject(sessionIdentitySchema.shape)
        .nullable()
        .meta({ description: 'The one that was received last.' }),
      identities: z.array(sessionIdentitySchema),
      identityCount: count,
      devices: z.array(sessionDeviceSchema),
      deviceCount: count,
      firstSeenAt: z.iso
        .datetime()
        .meta({ description: 'By arrival of its requests; where there are only spans of it, by their times.' }),
      lastSeenAt: z.iso.datetime(),
      traces: z.array(sessionTraceSchema),
      traceCount: count,
      findings: z.array(sessionFindingSchema),
      findingCount: count,
      replay: sessionReplaySchema.nullable(),
      truncated: z.boolean().meta({ description: 'A list is shorter than its count.' }),
    })
    .meta({ id: 'Session', description: 'Lists are the newest first, with at most 100 entries each.' }),
})
export type SessionAnswer = z.infer<typeof sessionAnswerSchema>
