import { z } from 'zod'
import { formatBytes, MIB } from '../byte-size.ts'
import { PUBLIC_KEY, READER } from '../credentials.ts'
import { ANSWERS } from '../example-answers.ts'
import { EXAMPLE, EXAMPLE_EVENTS, EXAMPLE_REPLAY_METADATA } from '../example-values.ts'
import { type Operation, type PermittedOperation, type RoutedOperation, SMALL_BODY_BYTES } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { publicKeyProblems, sessionsProblems } from '../problem-sets.ts'
import { replayEventsQuerySchema, replayPageSchema, replayUploadAnswerSchema } from '../replay/schemas.ts'
import { identifySessionSchema } from './identify-session.ts'
import { heartbeatSchema, sessionAnswerSchema, sessionIdSchema, sessionResponseSchema } from './schemas.ts'

const sessionPath = z.object({
  sessionId: sessionIdSchema.meta({
    description: 'The id of the session, as its SDK made it.',
    example: EXAMPLE.sessionId,
  }),
})
const acknowledged = {
  status: 200,
  description: 'On disk.',
  contents: { 'application/json': { schema: sessionResponseSchema, example: { ok: true } } },
} as const

/** A beacon can only send `text/plain`. */
function jsonContents(schema: z.ZodType, example: unknown) {
  return { 'application/json': { schema, example }, 'text/plain': { schema, example } }
}

/** The part of identifySession that does not depend on the installation (docs/contract.md#identify). */
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
    summary: 'Attach an end user to a session',
    description: `Providers whose identities are taken: ${identityProviders.join(', ')}, and custom with any name.`,
    body: { ...identifySession.body, contents: jsonContents(identifySessionSchema(identityProviders), example) },
    receiptStatuses: [200],
    success: acknowledged,
    problems: publicKeyProblems,
  }
}

export const heartbeat: Operation = {
  operationId: 'recordHeartbeat',
  method: 'POST',
  path: '/v3/session',
  service: 'frontier-runtime',
  tag: 'sessions',
  summary: 'Record that a device of a session is still there',
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

/** Limit of a chunk as sent. */
const CHUNK_LIMIT_BYTES = 10 * MIB

const replayMetadata = z
  .string()
  .max(8_192)
  .optional()
  .meta({
    description:
      'Base64 of a JSON object: windowId, segmentId, firstTs and lastTs (ms), optionally eventCount, hasFullSnapshot, activityCount. Without it nothing is kept.',
    example: Buffer.from(JSON.stringify(EXAMPLE_REPLAY_METADATA)).toString('base64'),
  })

export const uploadReplay: Operation = {
  operationId: 'uploadReplayChunk',
  method: 'POST',
  path: '/v3/replay/upload/:sessionId',
  service: 'frontier-runtime',
  tag: 'sessions',
  summary: 'Upload a chunk of a session’s recording',
  description: `JSON lines of recorded events, gzipped or not; at most ${formatBytes(CHUNK_LIMIT_BYTES)} as sent and 100 MiB decompressed.`,
  credentials: PUBLIC_KEY,
  cors: true,
  parameters: {
    path: sessionPath,
    header: z.object({ 'x-replay-metadata': replayMetadata }),
    query: z.object({ metadata: replayMetadata }),
  },
  body: {
    limitBytes: CHUNK_LIMIT_BYTES,
    overLimitCode: 'REPLAY_UPLOAD_REJECTED',
    contents: {
      'application/octet-stream': { example: EXAMPLE_EVENTS },
    },
  },
  receiptStatuses: [200],
  success: {
    status: 200,
    description: 'On disk, and where it will be stored; an empty key when it had no usable metadata.',
    contents: {
      'application/json': {
        schema: replayUploadAnswerSchema,
        example: {
          objectKey: `replays/${EXAMPLE.workspaceId}/${EXAMPLE.surfaceId}/${EXAMPLE.sessionId}/${EXAMPLE.windowId}/0.jsonl.gz`,
        },
      },
    },
  },
  problems: [
    ...publicKeyProblems,
    {
      code: 'REPLAY_UPLOAD_REJECTED',
      when: 'the body is empty or not gzip as it says, or the session id breaks its rule',
    },
  ],
}

export const readSession: PermittedOperation = {
  operationId: 'readSession',
  method: 'GET',
  path: '/v3/sessions/:sessionId',
  service: 'api-analytics',
  tag: 'sessions',
  summary: 'Identity, devices, traces, findings and replay of a session',
  credentials: READER,
  permission: 'org:sessions:read',
  parameters: { path: sessionPath },
  success: {
    status: 200,
    description: 'The session. Lists are the newest first, with at most 100 entries each.',
    contents: { 'application/json': { schema: sessionAnswerSchema, example: ANSWERS.readSession } },
  },
  problems: sessionsProblems,
}

export const readReplay: PermittedOperation = {
  operationId: 'readReplay',
  method: 'GET',
  path: '/v3/sessions/:sessionId/replay',
  service: 'api-analytics',
  tag: 'sessions',
  summary: 'The chunks of a session’s recording, and what is missing of it',
  credentials: READER,
  permission: 'org:sessions:read',
  parameters: { path: sessionPath, query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of chunks in reading order.',
    contents: { 'application/json': { schema: replayPageSchema, example: ANSWERS.readReplay } },
  },
  problems: sessionsProblems,
}

export const readReplayEvents: PermittedOperation = {
  operationId: 'readReplayEvents',
  method: 'GET',
  path: '/v3/sessions/:sessionId/replay/events',
  service: 'api-analytics',
  tag: 'sessions',
  summary: 'The events of a session’s recording in the order of their times',
  credentials: READER,
  permission: 'org:sessions:read',
  parameters: {
    path: sessionPath,
    query: z.object({ window: replayEventsQuerySchema.shape.window.meta({ example: EXAMPLE.windowId }) }),
  },
  success: {
    status: 200,
    description: 'JSON lines, each an event as it was uploaded.',
    contents: { 'application/x-ndjson': { example: EXAMPLE_EVENTS } },
  },
  problems: sessionsProblems,
}
