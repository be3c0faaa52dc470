import { z } from 'zod'
import { ADMITTED_QUEUES } from './names.ts'

/** Version of the job data of a commit. Data without a version is of this one. */
export const COMMIT_JOB_VERSION = 1

/** BullMQ job data of a commit: the number of framed requests in its payload, and the size of the payload. */
export const commitJobSchema = z.object({
  version: z.number().int().optional(),
  payloads: z.number().int().min(1),
  bytes: z.number().int().min(0),
  /** Set by an operator: the requests become dead letters for this reason, without being decoded. */
  setAside: z.string().optional(),
})
/** BullMQ job data of a commit. */
export type CommitJob = z.infer<typeof commitJobSchema>

/** Set if the release was not registered when the request arrived. Its receipt names it. */
export const unknownRelease = z.literal(true).optional()

/** Frame attributes of the queue `build-reports`. The body is the report in JSON, validated by the edge. */
export const buildReportJobSchema = z.object({ slug: z.string(), isUnknown: unknownRelease })
/** Frame attributes of the queue `build-reports`. */
export type BuildReportJob = z.infer<typeof buildReportJobSchema>

/** Frame body of the queue `receipts`: the outcome of a request whose worker writes no rows itself. */
export const settlementSchema = z.object({
  kind: z.enum(ADMITTED_QUEUES),
  /** Job that contained the request. */
  jobId: z.string(),
  /** Size of the request as sent. */
  bytes: z.number().int().min(0),
  /** When the request was replayed from its dead letter, in Unix ms; 0 if it was not. */
  replayedAtMs: z.number().default(0),
  /** Present if the request is not stored. `objectKey` names its dead letter, and is empty where there is none. */
  refusal: z
    .object({
      reason: z.string(),
      objectKey: z.string(),
      /** The dead letter was over the bound of its surface and day, and is not kept. */
      isDiscarded: z.boolean().default(false),
    })
    .optional(),
  /** What is only counted, by its `RejectionLabel`. */
  counted: z.record(z.string(), z.number().int()).optional(),
})
/** The outcome of a request. */
export type Settlement = z.infer<typeof settlementSchema>

const event = {
  sessionId: z.string(),
  deviceId: z.string().optional(),
  visitorId: z.string().optional(),
  fpHash: z.string().optional(),
  /** Faults of the optional fields that are left out, for the receipt: each begins with the name of the field. */
  leftOut: z.array(z.string()).optional(),
}

/**
 * Frame body of the queue `sessions`: a request that the edge has validated. Null fields are left out, like absent
 * ones. A row derives from the body and the frame.
 */
export const sessionEventSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('identify'),
    ...event,
    identifier: z.string(),
    source: z.object({ type: z.string(), name: z.string() }),
    avatar: z.string().optional(),
    email: z.string().optional(),
    name: z.string().optional(),
    country: z.string().optional(),
    /** A JSON object as text. It is never parsed, because the client chooses its keys. */
    traits: z.string().optional(),
  }),
  z.object({ kind: z.literal('heartbeat'), ...event }),
])
/** An event of a session. */
export type SessionEvent = z.infer<typeof sessionEventSchema>

/** Frame body of the queue `replay-chunks`: a stored chunk, described by its upload and its bytes, for its row. */
export const replayChunkSchema = z.object({
  sessionId: z.string(),
  windowId: z.string(),
  segmentId: z.string(),
  firstTs: z.number(),
  lastTs: z.number(),
  activityCount: z.number(),
  eventCount: z.number(),
  hasFullSnapshot: z.boolean(),
  /** Time of the first event; the one of the upload if no event has a time. */
  firstEventMs: z.number(),
  lastEventMs: z.number(),
  storedBytes: z.number(),
  decompressedBytes: z.number(),
  /** SHA-256 of the decompressed bytes, in hex. */
  sha256: z.string().length(64),
  /** SHA-256 of the bytes as sent, in hex. */
  sentSha256: z.string().length(64),
  /** Number of truncated lines that are left out, if there are any. */
  truncatedLines: z.number().int().optional(),
  /** Numbers of replaced values with the names of their rules, if there are any. */
  scrubbed: z
    .array(z.tuple([z.string(), z.number().int()]).readonly())
    .readonly()
    .optional(),
  objectKey: z.string(),
})
/** A stored chunk. */
export type ReplayChunk = z.infer<typeof replayChunkSchema>

/** Frame attributes of the queue `replay`: the metadata of an upload, and its session. */
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
/** An uploaded chunk. */
export type ReplayUpload = z.infer<typeof replayUploadSchema>
