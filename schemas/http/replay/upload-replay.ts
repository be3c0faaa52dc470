import { z } from 'zod'

/** What a Date can hold: beyond it a time is none. */
const instantMs = z.number().min(-8.64e15).max(8.64e15)
/** A lone surrogate has no UTF-8, and an id must be the same wherever it is written. */
const id = z.string().transform(value => value.toWellFormed())
/** Said beside what must be there: wrongly said, it counts as not said. */
const count = z.number().int().min(0).optional().catch(undefined)

/** Spec 2.5, as CONTRACT 4.3 calls it usable. A segment's number and the same digits as a text are one segment. */
export const replayMetadataSchema = z
  .object({
    windowId: id,
    segmentId: z.union([z.number().min(0).refine(Number.isInteger).transform(String), id]),
    firstTs: instantMs,
    lastTs: instantMs,
    eventCount: count,
    hasFullSnapshot: z.boolean().optional().catch(undefined),
    activityCount: count,
  })
  .refine(({ firstTs, lastTs }) => firstTs <= lastTs)
export type ReplayMetadata = z.infer<typeof replayMetadataSchema>

/** Frame attributes of the queue `replay`: the metadata of an upload, and the session it is of. */
export const replayUploadSchema = z.object({
  sessionId: z.string(),
  windowId: z.string(),
  segmentId: z.string(),
  firstTs: z.number(),
  lastTs: z.number(),
  eventCount: z.number().optional(),
  hasFullSnapshot: z.boolean().optional(),
  activityCount: z.number().optional(),
})
export type ReplayUpload = z.infer<typeof replayUploadSchema>

/** The key under which the chunk is stored; empty when it carried no usable metadata (spec 4.3). */
export const replayUploadAnswerSchema = z
  .strictObject({
    objectKey: z.string().meta({
      description: 'Where the object store will have the chunk; empty when it had no usable metadata and is not kept.',
    }),
  })
  .meta({ id: 'ReplayUpload' })
