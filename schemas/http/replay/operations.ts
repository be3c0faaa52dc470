import { z } from 'zod'
import { PUBLIC_KEY, READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { CHUNK_BYTES, CHUNK_DECOMPRESSED_BYTES, formatBytes } from '../limits.ts'
import type { Operation, PermittedOperation } from '../operation.ts'
import { publicKeyProblems, sessionsProblems } from '../problem-sets.ts'
import { sessionPath } from '../sessions/operations.ts'
import { ANSWERS, EXAMPLE_EVENTS, EXAMPLE_REPLAY_METADATA } from './examples.ts'
import { replayEventsQuerySchema, replayPageSchema, replayQuerySchema, replayUploadAnswerSchema } from './schemas.ts'

const replayMetadata = z
  .string()
  .optional()
  .meta({
    description:
      'Base64 of a JSON object: windowId, segmentId, firstTs and lastTs (ms), optionally eventCount, hasFullSnapshot and activityCount. Without usable metadata the chunk is not kept.',
    example: Buffer.from(JSON.stringify(EXAMPLE_REPLAY_METADATA)).toString('base64'),
  })

const contentEncoding = z
  .enum(['gzip'])
  .optional()
  .meta({ description: 'Present if the body is gzipped. A body that begins as gzip is gzipped without it too.' })

/** Accepts a chunk of a recording (docs/api/sessions.md#replay). */
export const uploadReplay: Operation = {
  operationId: 'uploadReplayChunk',
  method: 'POST',
  path: '/v3/replay/upload/:sessionId',
  service: 'frontier-runtime',
  tag: 'sessions',
  summary: 'Upload a chunk of a session’s recording',
  description: `JSON lines of recorded events, gzipped or not; at most ${formatBytes(CHUNK_BYTES)} as sent and ${formatBytes(CHUNK_DECOMPRESSED_BYTES)} decompressed.`,
  credentials: PUBLIC_KEY,
  cors: true,
  parameters: {
    path: sessionPath,
    header: z.object({ 'x-replay-metadata': replayMetadata, 'content-encoding': contentEncoding }),
    query: z.object({ metadata: replayMetadata }),
  },
  body: {
    limitBytes: CHUNK_BYTES,
    overLimitCode: 'REPLAY_UPLOAD_REJECTED',
    contents: {
      'application/octet-stream': { example: EXAMPLE_EVENTS },
    },
  },
  receiptStatuses: [200],
  success: {
    status: 200,
    description: 'On disk. The response names the future object key; it is empty if the chunk has no usable metadata.',
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
      when: 'the body is empty, the body is not gzip although content-encoding is gzip, or the session id is invalid',
    },
  ],
}

/** Lists the chunks of a recording (docs/api/sessions.md#sessions). */
export const readReplay: PermittedOperation = {
  operationId: 'readReplay',
  method: 'GET',
  path: '/v3/sessions/:sessionId/replay',
  service: 'api-analytics',
  tag: 'sessions',
  summary: 'List the chunks of a session’s recording, and its gaps',
  credentials: READER,
  permission: 'org:sessions:read',
  parameters: { path: sessionPath, query: replayQuerySchema },
  success: {
    status: 200,
    description: 'A page of chunks in reading order.',
    contents: { 'application/json': { schema: replayPageSchema, example: ANSWERS.readReplay } },
  },
  problems: sessionsProblems,
}

/** Reads the events of a recording (docs/api/sessions.md#replay-events). */
export const readReplayEvents: PermittedOperation = {
  operationId: 'readReplayEvents',
  method: 'GET',
  path: '/v3/sessions/:sessionId/replay/events',
  service: 'api-analytics',
  tag: 'sessions',
  summary: 'Read the events of a session’s recording, ordered by time',
  credentials: READER,
  permission: 'org:sessions:read',
  parameters: {
    path: sessionPath,
    query: z.object({
      ...replayEventsQuerySchema.shape,
      window: replayEventsQuerySchema.shape.window.meta({ example: EXAMPLE.windowId }),
    }),
  },
  success: {
    status: 200,
    description: 'JSON lines. Each is an event as it was uploaded.',
    contents: { 'application/x-ndjson': { example: EXAMPLE_EVENTS } },
  },
  problems: sessionsProblems,
}
