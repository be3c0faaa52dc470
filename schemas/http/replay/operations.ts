import { z } from 'zod'
import { formatBytes, MIB } from '../byte-size.ts'
import { PUBLIC_KEY, READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import type { Operation, PermittedOperation } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { publicKeyProblems, sessionsProblems } from '../problem-sets.ts'
import { sessionPath } from '../sessions/operations.ts'
import { ANSWERS, EXAMPLE_EVENTS, EXAMPLE_REPLAY_METADATA } from './examples.ts'
import { replayEventsQuerySchema, replayPageSchema, replayUploadAnswerSchema } from './schemas.ts'

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
