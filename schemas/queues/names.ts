import { z } from 'zod'

/** The queues, one per kind of work. A job of any of them refers to a payload in Redis and carries no bytes itself. */
export const QUEUES = [
  'traces',
  'logs',
  'metrics',
  'sessions',
  'replay',
  'replay-chunks',
  'source-maps',
  'completions',
  'build-reports',
  'exceptions',
  'span-stats',
  'symbolication',
  'receipts',
  'dead-letters',
  'dead-letter-index',
] as const
/** Accepts the name of a queue. */
export const queueNameSchema = z.enum(QUEUES)
/** Name of a queue. */
export type QueueName = z.infer<typeof queueNameSchema>

/** The pools of the workers: one for each queue, and the one that sends alerts, whose jobs are in the Redis of the directory. */
export const POOL_NAMES = [...QUEUES, 'deliveries'] as const
/** Accepts the name of a pool. */
export const poolNameSchema = z.enum(POOL_NAMES)
/** Name of a pool. */
export type PoolName = z.infer<typeof poolNameSchema>

/** Returns whether a pool has a queue of payloads. */
export const hasQueue = (pool: PoolName): pool is QueueName => (QUEUES as readonly PoolName[]).includes(pool)

/** The OTLP signals, by their names in `/drain/v1/{signal}`, which are those of their queues. */
export const SIGNALS = ['traces', 'logs', 'metrics'] as const satisfies readonly QueueName[]
/** Name of an OTLP signal. */
export type Signal = (typeof SIGNALS)[number]

/**
 * Queues with backpressure: all that the edge writes to. Their names are the kinds of requests that have receipts. Ids of receipts
 * contain the index in this list, so queues are only ever appended.
 */
export const ADMITTED_QUEUES = [
  ...SIGNALS,
  'sessions',
  'replay',
  'source-maps',
  'completions',
  'build-reports',
] as const satisfies readonly QueueName[]
/** Name of a queue with backpressure. */
export type AdmittedQueue = (typeof ADMITTED_QUEUES)[number]

/** Returns whether the edge writes to a queue. */
export const isAdmitted = (queue: QueueName): queue is AdmittedQueue =>
  (ADMITTED_QUEUES as readonly QueueName[]).includes(queue)

/** Queues that requests reach through group commits. */
export const INGEST_QUEUES = ADMITTED_QUEUES.filter(queue => queue !== 'completions')
/** Name of a queue that requests reach through group commits. */
export type IngestQueue = (typeof INGEST_QUEUES)[number]
