import { z } from 'zod'
import { queueNameSchema } from './names.ts'

/** BullMQ job data of a commit: the number of framed requests in its payload, and the size of the payload. */
export const commitJobSchema = z.object({
  payloads: z.number().int().min(1),
  bytes: z.number().int().min(0),
})
/** BullMQ job data of a commit. */
export type CommitJob = z.infer<typeof commitJobSchema>

/** Frame attributes of a dead letter: the request's origin, and why it could not be stored. */
export const deadLetterSchema = z.object({
  queue: queueNameSchema,
  jobId: z.string(),
  /** Position of the request in the payload of that job. */
  index: z.number().int().min(0),
  reason: z.string(),
  /** Frame attributes of the request, unchanged. */
  attributes: z.string(),
})
/** Frame attributes of a dead letter. */
export type DeadLetter = z.infer<typeof deadLetterSchema>

/** Frame attributes of the queue `build-reports`. The body is the report in JSON, validated by the edge. */
export const buildReportJobSchema = z.object({ slug: z.string() })
/** Frame attributes of the queue `build-reports`. */
export type BuildReportJob = z.infer<typeof buildReportJobSchema>
