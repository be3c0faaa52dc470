import { z } from 'zod'

/** Random text that names an installation, or an epoch of the data of a queue: 130 bits in base32. */
const randomIdSchema = z.string().regex(/^[a-z2-7]{26}$/)

/** Stores that an installation claims, besides both Redis. */
const CLAIMED_STORES = ['clickhouse', 'bucket'] as const
/** A store that an installation claims, besides both Redis. */
export type ClaimedStoreName = (typeof CLAIMED_STORES)[number]

/** A loss of the data of queues. All times are Unix ms by the clock of the Redis of the queues. */
const queueLossSchema = z.object({
  /** By kind of request: everything that was accepted before this time was settled before the loss. */
  settledBeforeMs: z.record(z.string(), z.number().int().min(0)),
  /** The last check that found the data. */
  seenAtMs: z.number().int().min(0),
  /** The check that found the loss. */
  foundAtMs: z.number().int().min(0),
  /** When an operator accepted the loss (`penstock queues accept-loss`). */
  acceptedAtMs: z.number().int().min(0).nullable(),
})
/** A loss of the data of queues. */
export type QueueLoss = z.infer<typeof queueLossSchema>

/** Record of an installation, in the directory. */
export const installationSchema = z.object({
  version: z.literal(1),
  id: randomIdSchema,
  createdAtMs: z.number().int().min(0),
  /** Stores that have its id. One of them without an id has lost its data. */
  stores: z.array(z.enum(CLAIMED_STORES)),
  /** Number of equal queues → the epoch of their data, which changes when Redis has lost it. */
  epochs: z.record(z.string().regex(/^\d{1,3}$/), randomIdSchema),
  /** The latest losses, the oldest first. */
  losses: z.array(queueLossSchema.extend({ queues: z.array(z.number().int().min(0)).min(1) })).max(100),
})
/** Record of an installation. */
export type Installation = z.infer<typeof installationSchema>

/** Record of the installation in the Redis of the queues, one for each number of equal queues. */
export const queueMarkSchema = z.object({
  version: z.literal(1),
  installation: randomIdSchema,
  epoch: randomIdSchema,
  /** The loss after which the epoch began. */
  loss: queueLossSchema.optional(),
})
/** Record of the installation in the Redis of the queues. */
export type QueueMark = z.infer<typeof queueMarkSchema>
