import { z } from 'zod'

/** The queues, one per kind of work. A job of any of them refers to a payload in Redis and carries no bytes itself. */
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
  'dead-letter-index',
] as const
/** Accepts the name of a queue. */
export const queueNameSchema = z.enum(QUEUES)
/** Name of a queue. */
export type QueueName = z.infer<typeof queueNameSchema>

/** Queue of each OTLP signal, by the signal's name in `/drain/v1/{signal}`. */
export const SIGNAL_QUEUES = { traces: 'spans', logs: 'logs', metrics: 'metrics' } as const satisfies Record<
  string,
  QueueName
>
/** Name of an OTLP signal in `/drain/v1/{signal}`. */
export type Signal = keyof typeof SIGNAL_QUEUES
/** Name of a queue of OTLP exports. */
export type SignalQueue = (typeof SIGNAL_QUEUES)[Signal]

/** Queues that requests reach through group commits. */
export const INGEST_QUEUES = ['spans', 'logs', 'metrics', 'sessions', 'replay', 'source-maps', 'build-reports'] as const
/** Name of a queue that requests reach through group commits. */
export type IngestQueue = (typeof INGEST_QUEUES)[number]

/** Queues with backpressure: all that the edge writes to. */
export const ADMITTED_QUEUES = [...INGEST_QUEUES, 'completions'] as const
/** Name of a queue with backpressure. */
export type AdmittedQueue = (typeof ADMITTED_QUEUES)[number]

/** Kinds of requests that have receipts. Ids contain the index in this list, so kinds are only ever appended. */
export const RECEIPT_KINDS = [
  'traces',
  'logs',
  'metrics',
  'sessions',
  'replay',
  'source-maps',
  'completions',
  'build-reports',
] as const
/** Kind of a request that has a receipt. */
export type ReceiptKind = (typeof RECEIPT_KINDS)[number]

/** Kind that the receipts of a queue's requests name. */
export const RECEIPT_KIND_OF_QUEUE: Readonly<Record<AdmittedQueue, ReceiptKind>> = {
  spans: 'traces',
  logs: 'logs',
  metrics: 'metrics',
  sessions: 'sessions',
  replay: 'replay',
  'source-maps': 'source-maps',
  completions: 'completions',
  'build-reports': 'build-reports',
}
