import { z } from 'zod'
import { RECEIPT_KINDS } from '../http/receipts/receipts.ts'

/** The body of a frame of the queue `receipts`: what became of a request whose worker writes no rows of its own. */
export const settlementSchema = z.object({
  kind: z.enum(RECEIPT_KINDS),
  /** That the request was in. */
  jobId: z.string(),
  /** As it was sent. */
  bytes: z.number().int().min(0),
  /** Of a request that is not stored; `objectKey` is that of its dead letter, empty where there is none. */
  refusal: z.object({ reason: z.string(), objectKey: z.string() }).optional(),
})
export type Settlement = z.infer<typeof settlementSchema>
