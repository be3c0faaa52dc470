import { z } from 'zod'

/** The queues, one per kind of work. A job of any of them refers to a payload in Redis; it never carries bytes. */
export const QUEUES = [
  'spans',
  'logs',
  'metrics',
  'sessions',
  'replay',
  'replay-chunks',
  'source-maps',
  'completions',
  'build-reports',
  'symbolication',
  'receipts',
  'dead-letters',
] as const

/** The signals of OTLP as `/drain/v1/{signal}` names them, and the queue of each. */
export const SIGNAL_QUEUES = { traces: 'spans', logs: 'logs', metrics: 'metrics' } as const satisfies Record<
  string,
  QueueName
>
export type Signal = keyof typeof SIGNAL_QUEUES
export type SignalQueue = (typeof SIGNAL_QUEUES)[Signal]

export const queueNameSchema = z.enum(QUEUES)
export type QueueName = z.infer<typeof queueNameSchema>

/** BullMQ job data of a commit: how many framed requests its payload holds, and the payload's size. */
export const commitJobSchema = z.object({
  payloads: z.number().int().min(1),
  bytes: z.number().int().min(0),
})
export type CommitJob = z.infer<typeof commitJobSchema>

/** Frame attributes of a dead letter: where it came from and why it could not be stored. */
export const deadLetterSchema = z.object({
  queue: queueNameSchema,
  jobId: z.string(),
  /** Position of the request in the payload of that job. */
  index: z.number().int().min(0),
  reason: z.string(),
  /** What the request had said beside its body, as it stood. */
  attributes: z.string(),
})
export type DeadLetter = z.infer<typeof deadLetterSchema>
