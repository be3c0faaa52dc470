import { z } from 'zod'
import { PUBLIC_KEY, READER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_REPLAY_COUNTERS, EXAMPLE_TIMES } from '../example-values.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { Operation, PermittedOperation, RoutedOperation } from '../operation.ts'
import { callerProblems, publicKeyProblems } from '../problem-sets.ts'
import { identifySessionSchema } from './identify-session.ts'
import { pageRequestQuery } from './page-request.ts'
import {
  heartbeatSchema,
  listSessionsQuerySchema,
  sessionAnswerSchema,
  sessionIdSchema,
  sessionResponseSchema,
  sessionsPageSchema,
} from './schemas.ts'
import { readTimelineQuerySchema, timelinePageSchema } from './timeline.ts'

const { findingId, traceId, spanId, sessionId, deviceId, surfaceId, serviceName } = EXAMPLE

const identity = {
  identifier: 'user-7',
  source: { type: 'custom', name: 'Our sign-in' },
  email: 'ada@example.com',
  traits: { plan: 'team' },
  attachedAt: EXAMPLE_TIMES.receivedAt,
}

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  listSessions: {
    sessions: [
      {
        id: sessionId,
        surfaceIds: [surfaceId],
        firstSeenAt: EXAMPLE_TIMES.receivedAt,
        lastSeenAt: EXAMPLE_TIMES.receivedAt,
        identity: { identifier: identity.identifier, email: identity.email },
        traceCount: 1,
        errorCount: 1,
        findingCount: 1,
        replayChunkCount: 1,
      },
    ],
    nextCursor: null,
  },
  readSession: {
    session: {
      id: sessionId,
      identity,
      identities: [identity],
      identityCount: 1,
      devices: [
        {
          deviceId,
          firstHeartbeatAt: EXAMPLE_TIMES.receivedAt,
          lastHeartbeatAt: EXAMPLE_TIMES.receivedAt,
          heartbeatCount: 1,
        },
      ],
      deviceCount: 1,
      firstSeenAt: EXAMPLE_TIMES.receivedAt,
      lastSeenAt: EXAMPLE_TIMES.receivedAt,
      traces: [
        {
          id: traceId,
          traceId,
          startedAt: EXAMPLE_TIMES.startedAt,
          endedAt: EXAMPLE_TIMES.endedAt,
          spanCount: 1,
          errorCount: 1,
        },
      ],
      traceCount: 1,
      findings: [{ id: findingId, occurrenceCount: 1, lastSeenAt: EXAMPLE_TIMES.thrownAt }],
      findingCount: 1,
      pages: [{ id: 'page-1', receivedCount: 3, missingCount: 1, missing: [2] }],
      pageCount: 1,
      replay: {
        chunkCount: 1,
        windowCount: 1,
        ...EXAMPLE_REPLAY_COUNTERS,
        firstEventAt: EXAMPLE_TIMES.firstEventAt,
        lastEventAt: EXAMPLE_TIMES.lastEventAt,
      },
      truncated: false,
    },
  },
  readTimeline: {
    entries: [
      {
        kind: 'span',
        at: EXAMPLE_TIMES.startedAt,
        receivedCount: 1,
        surfaceId,
        ...{ traceId, spanId },
        name: 'GET /cart',
        serviceName,
        durationMs: 42,
        status: 'ERROR',
      },
      {
        kind: 'finding',
        at: EXAMPLE_TIMES.thrownAt,
        receivedCount: 1,
        surfaceId,
        ...{ traceId, spanId, findingId, serviceName },
        type: EXAMPLE_EXCEPTION.type,
        message: EXAMPLE_EXCEPTION.message,
      },
    ],
    nextCursor: null,
  },
} as const

/** Path of operations on one session. */
export const sessionPath = z.object({
  sessionId: sessionIdSchema.meta({
    description: 'The id of the session, as the SDK generated it.',
    example: EXAMPLE.sessionId,
  }),
})

const acknowledged = {
  status: 200,
  description: 'On disk.',
  contents: { 'application/json': { schema: sessionResponseSchema, example: { ok: true } } },
} as const

const LEFT_OUT = 'An optional field that breaks its rule is left out and named in the receipt.'

/** Returns a JSON body that may also be sent as `text/plain`, because beacons can send nothing else. */
function jsonContents(schema: z.ZodType, example: unknown) {
  return { 'application/json': { schema, example }, 'text/plain': { schema, example } }
}

/** The part of identifySession that does not depend on the installation (docs/api/sessions.md#identify). */
export const identifySession = {
  method: 'POST',
  path: '/v3/session/identify',
  service: 'frontier-runtime',
  credentials: PUBLIC_KEY,
  cors: true,
  body: { limitBytes: SMALL_BODY_BYTES },
} as const satisfies RoutedOperation

/** Returns identifySession as an installation with these identity providers documents it. */
export function identifySessionWith(identityProviders: readonly string[]): Operation {
  const example = {
    sessionId: EXAMPLE.sessionId,
    identifier: 'user-7',
    source: { type: 'custom', name: 'Our sign-in' },
    email: 'ada@example.com',
    traits: { plan: 'team' },
  }
  return {
    ...identifySession,
    operationId: 'identifySession',
    tag: 'sessions',
    parameters: { query: pageRequestQuery },
    summary: 'Attach an end user to a session',
    description: `Accepted identity providers: ${identityProviders.join(', ')}, and custom with any name. ${LEFT_OUT}`,
    body: { ...identifySession.body, contents: jsonContents(identifySessionSchema(identityProviders), example) },
    receiptStatuses: [200],
    success: acknowledged,
    problems: publicKeyProblems,
  }
}

/** Records a heartbeat (docs/api/sessions.md#heartbeat). */
export const heartbeat: Operation = {
  operationId: 'recordHeartbeat',
  parameters: { query: pageRequestQuery },
  method: 'POST',
  path: '/v3/session',
  service: 'frontier-runtime',
  tag: 'sessions',
  summary: 'Record that a device of a session is active',
  description: LEFT_OUT,
  credentials: PUBLIC_KEY,
  cors: true,
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: jsonContents(heartbeatSchema, {
      sessionId: EXAMPLE.sessionId,
      deviceId: EXAMPLE.deviceId,
    }),
  },
  receiptStatuses: [200],
  success: acknowledged,
  problems: publicKeyProblems,
}

const { user, surface, hasFinding, hasReplay, from, to, ...page } = listSessionsQuerySchema.shape

/** Lists sessions (docs/api/sessions.md#session-list). */
export const listSessions: PermittedOperation = {
  operationId: 'listSessions',
  method: 'GET',
  path: '/v3/sessions',
  service: 'api-analytics',
  tag: 'sessions',
  summary: 'List the sessions of the workspace, last seen first',
  description:
    'All pages show the order that the sessions had when the first page was read. With `hasFinding` or `hasReplay` a page may have fewer entries than `limit`, or none, before the last page.',
  credentials: READER,
  permission: 'org:sessions:read',
  parameters: {
    query: z.object({
      ...page,
      user: user.meta({ example: 'user-7' }),
      surface: surface.meta({ example: EXAMPLE.surfaceId }),
      hasFinding: hasFinding.meta({ example: 'true' }),
      hasReplay: hasReplay.meta({ example: 'true' }),
      from: from.meta({ example: EXAMPLE.from }),
      to: to.meta({ example: EXAMPLE.to }),
    }),
  },
  success: {
    status: 200,
    description: 'A page of sessions.',
    contents: { 'application/json': { schema: sessionsPageSchema, example: ANSWERS.listSessions } },
  },
  problems: callerProblems,
}

/** Reads a session (docs/api/sessions.md#sessions). */
export const readSession: PermittedOperation = {
  operationId: 'readSession',
  method: 'GET',
  path: '/v3/sessions/:sessionId',
  service: 'api-analytics',
  tag: 'sessions',
  summary: 'Read a session: identities, devices, traces, findings and replay',
  credentials: READER,
  permission: 'org:sessions:read',
  parameters: { path: sessionPath },
  success: {
    status: 200,
    description: 'The session. Lists are ordered newest first, with at most 100 entries each.',
    contents: { 'application/json': { schema: sessionAnswerSchema, example: ANSWERS.readSession } },
  },
  problems: callerProblems,
}

const timelineQuery = readTimelineQuerySchema.shape

/** Reads the timeline of a session (docs/api/sessions.md#session-timeline). */
export const readTimeline: PermittedOperation = {
  operationId: 'readSessionTimeline',
  method: 'GET',
  path: '/v3/sessions/:sessionId/timeline',
  service: 'api-analytics',
  tag: 'sessions',
  summary: 'Read spans, log records, findings, heartbeats, identities and replay chunks of a session, oldest first',
  description: 'A page may have fewer entries than `limit`, because it has room for 1 MiB.',
  credentials: READER,
  permission: 'org:sessions:read',
  parameters: {
    path: sessionPath,
    query: z.object({
      ...timelineQuery,
      kinds: timelineQuery.kinds.meta({ example: 'span,finding' }),
      from: timelineQuery.from.meta({ example: EXAMPLE.from }),
      to: timelineQuery.to.meta({ example: EXAMPLE.to }),
    }),
  },
  success: {
    status: 200,
    description: 'A page of the timeline.',
    contents: { 'application/json': { schema: timelinePageSchema, example: ANSWERS.readTimeline } },
  },
  problems: callerProblems,
}
