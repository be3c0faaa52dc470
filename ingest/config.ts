import { z } from 'zod'
import { identityProvidersSchema } from '../schemas/http/sessions/identify-session.ts'
import { GIB, MIB } from '../schemas/units.ts'
import { MAX_PARTITIONS } from '../shared/queue/registry/queue-tag.ts'
import {
  count,
  durabilitySettings,
  httpSettings,
  httpUrl,
  objectStoreSettings,
  port,
  processSettings,
  redisSettings,
} from '../shared/runtime/config.ts'

/** The settings of the edge. */
export const ingestConfigSchema = z.object({
  ...processSettings,
  ...httpSettings,
  ...redisSettings,
  ...durabilitySettings,
  ...objectStoreSettings,
  INGEST_PORT: port(4318),
  INGEST_ADMIN_PORT: port(4319),
  /** The port of OTLP/gRPC. Default: the one below INGEST_PORT, as OTLP has them. */
  INGEST_GRPC_PORT: z.coerce.number().int().min(1).max(65_535).optional(),
  /**
   * The most cost per queue of requests that are accepted and not yet stored: estimated work in decoded bytes, and at least its
   * size and 8 KiB. A surface may have as much as is left. Above it, its requests get INGEST_BACKPRESSURE.
   */
  QUEUE_MAX_COST: count(4 * GIB),
  /**
   * Partitions that this process spreads its commits over, each of which is in one slot of a Redis Cluster. Edges may have
   * different numbers.
   */
  QUEUE_PARTITIONS: z.coerce.number().int().min(1).max(MAX_PARTITIONS).default(1),
  /**
   * The share of Redis' maxmemory above which no request is accepted, because a full Redis stops the workers too. What is left
   * of it bounds the cost of all queues in proportion.
   */
  REDIS_MAX_MEMORY_SHARE: z.coerce.number().gt(0).max(1).default(0.7),
  /** The most bytes of bodies in the memory of the process. One surface gets at most two thirds of them. */
  HELD_BODY_BYTES: count(96 * MIB),
  /** How long Redis may take to confirm a write. After it, requests get INGEST_INFRA_UNAVAILABLE. */
  COMMIT_TIMEOUT_MS: count(800),
  /** Display names, separated by commas (docs/api/sessions.md#identify). */
  IDENTITY_PROVIDERS: identityProvidersSchema,
  /** The endpoint in presigned addresses, where clients reach the object store by another name than the service. */
  S3_PUBLIC_ENDPOINT: httpUrl().optional(),
  /** How long a request waits for a worker's verdict. */
  VERDICT_TIMEOUT_MS: count(20_000),
  /**
   * The most requests that wait for verdicts at once, which surfaces share. Above its share, a request gets
   * INGEST_BACKPRESSURE.
   */
  VERDICT_MAX_WAITING: count(1_000),
  /** How long a shutdown may take. */
  SHUTDOWN_DEADLINE_MS: count(15_000),
})
/** The valid settings of the edge. */
export type IngestConfig = Readonly<z.infer<typeof ingestConfigSchema>>

/** Returns the port of OTLP/gRPC. */
export function grpcPortOf({
  INGEST_PORT,
  INGEST_GRPC_PORT,
}: Pick<IngestConfig, 'INGEST_PORT' | 'INGEST_GRPC_PORT'>): number {
  return INGEST_GRPC_PORT ?? INGEST_PORT - 1
}
