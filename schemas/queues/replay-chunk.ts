import { z } from 'zod'

/** The body of a frame of the queue `replay-chunks`: a stored chunk as its upload and its bytes tell of it, for its row. */
export const replayChunkSchema = z.object({
  sessionId: z.string(),
  windowId: z.string(),
  segmentId: z.string(),
  firstTs: z.number(),
  lastTs: z.number(),
  activityCount: z.number(),
  eventCount: z.number(),
  hasFullSnapshot: z.boolean(),
  /** Of its events; what the upload says where none of them tells its time. */
  firstEventMs: z.number(),
  lastEventMs: z.number(),
  storedBytes: z.number(),
  decompressedBytes: z.number(),
  /** Of the decompressed bytes, in hex. */
  sha256: z.string().length(64),
  objectKey: z.string(),
})
export type ReplayChunk = z.infer<typeof replayChunkSchema>
