import { z } from 'zod'
import { nextCursorSchema } from '../page.ts'

/** Gaps, and windows without a snapshot, that are told of one replay; more are only said to be there. */
export const REPLAY_FAULTS_MAX = 100

const instant = z.iso.datetime({ precision: 3 })
const count = z.number().int().min(0)

export const storedChunkSchema = z
  .strictObject({
    id: z.string().regex(/^chk_[0-9a-f]{32}$/),
    objectKey: z.string(),
    windowId: z.string(),
    segmentId: z.string(),
    firstTs: z.number().int().meta({ description: 'What the upload said, in ms since 1970.' }),
    lastTs: z.number().int(),
    firstEventAt: instant.meta({ description: 'What its events say.' }),
    lastEventAt: instant,
    eventCount: count,
    hasFullSnapshot: z.boolean(),
    activityCount: count.meta({ description: 'Events that a person caused.' }),
    storedBytes: count.meta({ description: 'Gzipped.' }),
    decompressedBytes: count,
    receivedAt: instant,
  })
  .meta({ id: 'ReplayChunk' })
export type StoredChunk = z.infer<typeof storedChunkSchema>

/** Segments that were never received, between two of the same window that were. */
export const replayGapSchema = z
  .strictObject({
    windowId: z.string(),
    after: z.number().int().meta({ description: 'The last segment before the gap.' }),
    before: z.number().int().meta({ description: 'The first segment behind it.' }),
    missingCount: z.number().int().min(1),
  })
  .meta({ id: 'ReplayGap', description: 'Segments of a window that never came, between two that did.' })
export type ReplayGap = z.infer<typeof replayGapSchema>

/**
 * GET /v3/sessions/{sessionId}/replay: a page of chunks in reading order. Gaps and missing snapshots are of the whole
 * session, on every page; `truncated` says that not all of them are named.
 */
export const replayPageSchema = z
  .strictObject({
    chunks: z.array(storedChunkSchema),
    nextCursor: nextCursorSchema,
    gaps: z.array(replayGapSchema).meta({ description: 'Of the whole session, on every page.' }),
    missingFullSnapshots: z.array(z.string()).meta({
      description: 'Windows whose first chunk has no full snapshot: they cannot be played from their beginning.',
    }),
    truncated: z.boolean().meta({ description: 'There are more gaps or windows than the 100 that are named of each.' }),
  })
  .meta({ id: 'ReplayPage' })
export type ReplayPage = z.infer<typeof replayPageSchema>

/** The query of GET /v3/sessions/{sessionId}/replay/events; the answer is JSON lines, each an event as it was uploaded. */
export const replayEventsQuerySchema = z.object({
  window: z.string().optional().meta({ description: 'Only the events of this window.' }),
})
