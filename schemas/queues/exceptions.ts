import { z } from 'zod'

const count = z.number().int().min(0)
const counts = z.record(z.string(), count).default({})
const entry = { index: count, reason: z.string(), objectKey: z.string() }

/**
 * Frame attributes of the queue `exceptions`. The frame has the exceptions of one request: its body is records
 * (workers/exceptions/exception-records.ts).
 */
export const passedOnSchema = z.object({
  /** Version of the records. */
  version: z.number().int(),
  signal: z.enum(['traces', 'logs']),
  /** Job that contained the request. */
  jobId: z.string(),
  /** When the request was replayed from its dead letter, in Unix ms; 0 if it was not. */
  replayedAtMs: z.number().default(0),
  /** The outcome of the request, for the log, when these exceptions are stored. Absent if another frame or the log has it. */
  outcome: z
    .object({
      /** Size of the request as sent. */
      bytes: count,
      rejected: counts,
      deadLettered: counts,
      discarded: counts,
      discardedIndexes: z.array(count).default([]),
      refused: z.array(z.object(entry)).default([]),
      rejections: z.array(z.object({ ...entry, records: count })).default([]),
    })
    .optional(),
})
/** Frame attributes of the queue `exceptions`. */
export type PassedOn = z.infer<typeof passedOnSchema>

/** Version of the records. */
export const RECORDS_VERSION = 1
