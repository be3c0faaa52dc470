import { z } from 'zod'
import { nextCursorSchema } from '../page.ts'

/** What a Date can hold: beyond it a time is none. */
const instantMs = z.number().min(-8.64e15).max(8.64e15)
/** A lone surrogate has no UTF-8, and an id must be the same wherever it is written. */
const id = z.string().transform(value => value.toWellFormed())
/** Said beside what must be there: wrongly said, it counts as not said. */
const countHint = z.number().int().min(0).optional().catch(undefined)

/** Spec 2.5, as CONTRACT 4.3 calls it usable. A segment's number and the same digits as a text are one segment. */
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
export type ReplayMetadata = z.infer<typeof replayMetadataSchema>

/** The key under which the chunk is stored; empty when it carried no usable metadata (spec 4.3). */
export const replayUploadAnswerSchema = z
  .strictObject({
    objectKey: z.string().meta({
      description: 'Where the object store will have the chunk; empty when it had no usable metadata and is not kept.',
    }),
  })
  .meta({ id: 'ReplayUpload' })

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
