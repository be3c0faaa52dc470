import { z } from 'zod'
import { identityProvidersSchema } from '../schemas/http/sessions/identify-session.ts'
import { MAX_RECEIPTS } from '../shared/ids/receipt.ts'
import { count, objectStoreSettings, port, processSettings, redisSettings } from '../shared/runtime/config.ts'

export const ingestConfigSchema = z.object({
  ...processSettings,
  ...redisSettings,
  ...objectStoreSettings,
  INGEST_PORT: port(4318),
  INGEST_ADMIN_PORT: port(4319),
  /** Requests accepted and not yet stored, per queue; above it, INGEST_BACKPRESSURE. */
  QUEUE_MAX_PAYLOADS: count(500_000),
  /** Their bytes, per queue. */
  QUEUE_MAX_BYTES: count(1024 * 1024 * 1024),
  /** Share of Redis' maxmemory above which nothing is admitted: a full Redis stops the workers too. */
  REDIS_MAX_MEMORY_SHARE: z.coerce.number().gt(0).max(1).default(0.7),
  /** Body bytes that the process holds at once. */
  HELD_BODY_BYTES: count(256 * 1024 * 1024),
  COMMIT_MAX_BYTES: count(4 * 1024 * 1024),
  COMMIT_MAX_FRAMES: z.coerce.number().int().min(1).max(MAX_RECEIPTS).default(512),
  /** A write that Redis has not confirmed by then is answered INGEST_INFRA_UNAVAILABLE. */
  COMMIT_TIMEOUT_MS: count(800),
  /** Display names, with commas between them (CONTRACT 4.1). */
  IDENTITY_PROVIDERS: identityProvidersSchema,
  /** What presigned addresses name, where clients reach the object store by another name than the service does. */
  S3_PUBLIC_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  /** How long a request waits for what a worker finds of it. */
  VERDICT_TIMEOUT_MS: count(20_000),
  /** Requests that wait so at once; above it, INGEST_BACKPRESSURE. */
  VERDICT_MAX_WAITING: count(1_000),
  SHUTDOWN_DEADLINE_MS: count(15_000),
})
export type IngestConfig = Readonly<z.infer<typeof ingestConfigSchema>>
