import { z } from 'zod'
import { instantQuerySchema, isOrdered, orderedRange } from '../filters.ts'
import { cursorSchema, nextCursorSchema, pageLimit } from '../page.ts'

/** A time in ms, within the range of a Date. */
const instantMs = z.number().min(-8.64e15).max(8.64e15)
/**
 * An id. Lone surrogates are replaced, because they have no UTF-8 and an id must be the same wherever it is written.
 */
const id = z.string().transform(value => value.toWellFormed())
/** An optional count. An invalid one is treated as absent. */
const countHint = z.number().int().min(0).optional().catch(undefined)

/** Usable metadata of a chunk (docs/api/sessions.md#replay). A segment id may be a number or the same digits as text. */
export const replayMetadataSchema = z
  .object({
    windowId: id,
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
export const replayUploadAnswerSchema = z
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
export const storedChunkSchema = z
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
export const replayGapSchema = z
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
