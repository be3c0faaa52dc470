import { z } from 'zod'

/** The queues, one per kind of work. A job of any of them refers to a payload in Redis; it never carries bytes. */
export const QUEUES = ['spans', 'dead-letters'] as const
export type QueueName = (typeof QUEUES)[number]

/** BullMQ job data of a commit: how many framed requests its payload holds, and their size. */
export const commitJobSchema = z.object({
  payloads: z.number().int().min(1),
  bytes: z.number().int().min(0),
})
export type CommitJob = z.infer<typeof commitJobSchema>
