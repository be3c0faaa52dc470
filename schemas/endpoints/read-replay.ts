import { z } from 'zod'
import { nextCursorSchema } from './page.ts'

/** Gaps, and windows without a snapshot, that are told of one replay; more are only said to be there. */
export const REPLAY_FAULTS_MAX = 100

const instant = z.iso.datetime({ precision: 3 })
const count = z.number().int().min(0)

export const storedChunkSchema = z.strictObject({
  id: z.string().regex(/^chk_[0-9a-f]{32}$/),
  objectKey: z.string(),
  windowId: z.string(),
  segmentId: z.string(),
  /** What the upload said, in ms. */
  firstTs: z.number().int(),
  lastTs: z.number().int(),
  /** What its events say. */
  firstEventAt: instant,
  lastEventAt: instant,
  eventCount: count,
  hasFullSnapshot: z.boolean(),
  activityCount: count,
  storedBytes: count,
  decompressedBytes: count,
  receivedAt: instant,
})
export type StoredChunk = z.infer<typeof storedChunkSchema>

/** Segments that were never received, between two of the same window that were. */
export const replayGapSchema = z.strictObject({
  windowId: z.string(),
  /** The segments on both sides. */
  after: z.number().int(),
  before: z.number().int(),
  missingCount: z.number().int().min(1),
})
export type ReplayGap = z.infer<typeof replayGapSchema>

/**
 * GET /v3/sessions/{sessionId}/replay: a page of chunks in reading order. Gaps and missing snapshots are of the whole
 * session, on every page; `truncated` says that not all of them are named.
 */
export const replayPageSchema = z.strictObject({
  chunks: z.array(storedChunkSchema),
  nextCursor: nextCursorSchema,
  gaps: z.array(replayGapSchema),
  /** Windows whose first chunk has no full snapshot: they cannot be played from their beginning. */
  missingFullSnapshots: z.array(z.string()),
  truncated: z.boolean(),
})
export type ReplayPage = z.infer<typeof replayPageSchema>

/** The query of GET /v3/sessions/{sessionId}/replay/events; the answer is JSON lines, each an event as it was uploaded. */
export const replayEventsQuerySchema = z.object({
  /** Only the events of this window. */
  window: z.string().optional(),
})
