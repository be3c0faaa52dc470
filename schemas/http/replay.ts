import { z } from 'zod'
import { PUBLIC_KEY, READER } from './credentials.ts'
import { EXAMPLE, EXAMPLE_REPLAY_COUNTERS, EXAMPLE_TIMES } from './example-values.ts'
import { instantQuerySchema, isOrdered, orderedRange } from './filters.ts'
import { CHUNK_BYTES, CHUNK_DECOMPRESSED_BYTES, formatBytes } from './limits.ts'
import type { Operation, PermittedOperation } from './operation.ts'
import { cursorSchema, nextCursorSchema, pageLimit } from './page.ts'
import { callerProblems, publicKeyProblems } from './problem-sets.ts'
import { sessionPath } from './sessions/operations.ts'

/** A number, or the same as text. */
const number = z.union([
  z.number(),
  z
    .string()
    .regex(/^\s*-?\d+(\.\d+)?(e[+-]?\d+)?\s*$/i)
    .transform(Number),
])
/** A time in ms, within the range of a Date. */
const instantMs = number.pipe(z.number().min(-8.64e15).max(8.64e15))
/**
 * An id. Lone surrogates are replaced, because they have no UTF-8 and an id must be the same wherever it is written.
 */
const id = z.string().transform(value => value.toWellFormed())
/** An optional count. An invalid one is treated as absent. */
const countHint = number.pipe(z.number().int().min(0)).optional().catch(undefined)

/** Usable metadata of a chunk (docs/api/sessions.md#replay). An id may be a number or the same digits as text. */
export const replayMetadataSchema = z
  .object({
    windowId: z.union([z.number().transform(String), id]),
    segmentId: z.union([z.number().min(0).refine(Number.isInteger).transform(String), id]),
    firstTs: instantMs,
    lastTs: instantMs,
    eventCount: countHint,
    hasFullSnapshot: z.boolean().optional().catch(undefined),
    activityCount: countHint,
  })
  .refine(({ firstTs, lastTs }) => firstTs <= lastTs)
/** Usable metadata of a chunk. */
export type ReplayMetadata = z.infer<typeof replayMetadataSchema>

/** Response to an upload (docs/api/sessions.md#replay). */
const replayUploadAnswerSchema = z
  .strictObject({
    objectKey: z.string().meta({
      description:
        'The future key of the chunk in the object store. Empty if the chunk has no usable metadata and is not kept.',
    }),
  })
  .meta({ id: 'ReplayUpload' })

/** Most gaps, and most windows without a snapshot, that a response names. `truncated` reports that there are more. */
export const REPLAY_FAULTS_MAX = 100

const CHUNKS_MAX = 500

/** Query of GET /v3/sessions/{sessionId}/replay. */
export const replayQuerySchema = z.object({ limit: pageLimit(CHUNKS_MAX, 50), cursor: cursorSchema })

const instant = z.iso.datetime({ precision: 3 })
const count = z.number().int().min(0)

/** A stored chunk. */
const storedChunkSchema = z
  .strictObject({
    id: z.string().regex(/^chk_[0-9a-f]{32}$/),
    objectKey: z.string(),
    windowId: z.string(),
    segmentId: z.string(),
    firstTs: z.number().int().meta({ description: 'As stated by the upload, in ms since 1970.' }),
    lastTs: z.number().int(),
    firstEventAt: instant.meta({ description: 'As stated by its events.' }),
    lastEventAt: instant,
    eventCount: count,
    hasFullSnapshot: z.boolean(),
    activityCount: count.meta({ description: 'Number of events caused by a person.' }),
    storedBytes: count.meta({ description: 'Size after gzip.' }),
    decompressedBytes: count,
    receivedAt: instant,
  })
  .meta({ id: 'ReplayChunk' })
/** A stored chunk. */
export type StoredChunk = z.infer<typeof storedChunkSchema>

/** Segments of a window that were never received, between two that were. */
const replayGapSchema = z
  .strictObject({
    windowId: z.string(),
    after: z.number().int().meta({ description: 'The last segment before the gap.' }),
    before: z.number().int().meta({ description: 'The first segment after the gap.' }),
    missingCount: z.number().int().min(1),
  })
  .meta({ id: 'ReplayGap', description: 'Segments of a window that were never received, between two that were.' })
/** A gap of a window. */
export type ReplayGap = z.infer<typeof replayGapSchema>

/**
 * Response of GET /v3/sessions/{sessionId}/replay: a page of chunks in reading order. Every page lists the gaps and
 * missing snapshots of the whole session.
 */
export const replayPageSchema = z
  .strictObject({
    chunks: z.array(storedChunkSchema),
    nextCursor: nextCursorSchema,
    gaps: z.array(replayGapSchema).meta({ description: 'The gaps of the whole session, on every page.' }),
    missingFullSnapshots: z.array(z.string()).meta({
      description: 'Windows whose first chunk has no full snapshot. They cannot be played from their beginning.',
    }),
    truncated: z.boolean().meta({ description: 'Whether there are more gaps or windows than the 100 listed of each.' }),
  })
  .meta({ id: 'ReplayPage' })
/** Response of GET /v3/sessions/{sessionId}/replay. */
export type ReplayPage = z.infer<typeof replayPageSchema>

/** Query of GET /v3/sessions/{sessionId}/replay/events, whose response is JSON lines. */
export const replayEventsQuerySchema = z
  .object({
    window: z.string().optional().meta({ description: 'Only the events of this window.' }),
    from: instantQuerySchema.optional().meta({ description: 'Only the events of this time or later.' }),
    to: instantQuerySchema.optional().meta({ description: 'Only the events before this time.' }),
  })
  .refine(isOrdered, orderedRange)

const { surfaceId, sessionId, workspaceId } = EXAMPLE

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  readReplay: {
    chunks: [
      {
        id: 'chk_a60180507058f43a0ba8b452be3e5eb1',
        objectKey: `replays/${workspaceId}/${surfaceId}/${sessionId}/${EXAMPLE.windowId}/0.jsonl.gz`,
        windowId: EXAMPLE.windowId,
        segmentId: '0',
        firstTs: EXAMPLE.recordedAtMs,
        lastTs: EXAMPLE.recordedAtMs + 20,
        firstEventAt: EXAMPLE_TIMES.firstEventAt,
        lastEventAt: EXAMPLE_TIMES.lastEventAt,
        hasFullSnapshot: true,
        activityCount: 0,
        ...EXAMPLE_REPLAY_COUNTERS,
        receivedAt: EXAMPLE_TIMES.receivedAt,
      },
    ],
    nextCursor: null,
    gaps: [],
    missingFullSnapshots: [],
    truncated: false,
  },
} as const

/** Recorded events as JSON lines: the address of a page, and a full snapshot. */
const EXAMPLE_EVENTS = [
  { type: 4, data: { href: 'https://shop.example/cart', width: 1280, height: 720 }, timestamp: EXAMPLE.recordedAtMs },
  { type: 2, data: { node: { type: 0, childNodes: [], id: 1 } }, timestamp: EXAMPLE.recordedAtMs + 20 },
]
  .map(event => `${JSON.stringify(event)}\n`)
  .join('')

/** Metadata of the upload of EXAMPLE_EVENTS. */
const EXAMPLE_REPLAY_METADATA = {
  windowId: EXAMPLE.windowId,
  segmentId: 0,
  firstTs: EXAMPLE.recordedAtMs,
  lastTs: EXAMPLE.recordedAtMs + 20,
  eventCount: 2,
  hasFullSnapshot: true,
} as const

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
  problems: [...publicKeyProblems, { code: 'REPLAY_UPLOAD_REJECTED' }],
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
  problems: callerProblems,
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
  problems: [...callerProblems, { code: 'NOT_FOUND', status: 410 }],
}
