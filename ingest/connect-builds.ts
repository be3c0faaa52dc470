import type { Redis } from 'ioredis'
import type { Directory } from '../shared/directory/directory.ts'
import type { ReleaseStore } from '../shared/directory/release-store.ts'
import { connectObjectStore } from '../shared/object-store/connect.ts'
import type { ObjectStore } from '../shared/object-store/object-store.ts'
import type { Lifecycle } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { createSecretKeyAuthenticator, type SecretKeyAuthenticator } from './auth/authenticate-build.ts'
import { createReleaseLookup, type ReleaseLookup } from './auth/release-lookup.ts'
import { type ConditionalCommit, createConditionalCommit } from './commit/conditional-commit.ts'
import type { ReceiptIssuer } from './commit/receipt-issuer.ts'
import type { IngestConfig } from './config.ts'
import type { CompletionOutcome, IngestMetrics } from './metrics.ts'
import type { ClaimOutcome } from './releases/claim-part.ts'
import { createVerdictWaits, type VerdictWaits } from './releases/verdict-waits.ts'

/** What the routes of secret keys need beside the rest (spec 4.5 to 4.8). */
export interface BuildDeps {
  readonly secretKeys: SecretKeyAuthenticator
  readonly releases: Pick<ReleaseStore, 'register' | 'storedMaps'>
  readonly releaseLookup: ReleaseLookup
  /** Of the queue `source-maps`, for parts, which are claimed. */
  readonly parts: ConditionalCommit
  readonly completions: ConditionalCommit
  /** The Redis of the queues, for what is declared there. */
  readonly uploads: Redis
  readonly objects: Pick<ObjectStore, 'presignPut'>
  readonly verdicts: VerdictWaits
  readonly onPart: (outcome: ClaimOutcome) => void
  readonly onCompletion: (outcome: CompletionOutcome) => void
}

export interface ConnectBuildsDeps {
  readonly directory: Directory
  readonly releases: ReleaseStore
  readonly receipts: ReceiptIssuer
  /** Opens another connection to the Redis of the queues. */
  readonly connect: () => Redis
  readonly metrics: IngestMetrics
  readonly lifecycle: Lifecycle
  readonly logger: Logger
}

/** Each kind of write has a connection of its own: none waits behind another's megabytes. */
export function connectBuilds(
  config: IngestConfig,
  { directory, releases, receipts, connect, metrics, lifecycle, logger }: ConnectBuildsDeps,
): { deps: BuildDeps; connections: readonly Redis[] } {
  const [partsRedis, completionsRedis, uploads] = [connect(), connect(), connect()]
  const conditional = (queue: 'source-maps' | 'completions', redis: Redis): ConditionalCommit => {
    const commit = createConditionalCommit(
      { redis, queue, receipts, logger },
      {
        timeoutMs: config.COMMIT_TIMEOUT_MS,
        onCommit: (frames, bytes, durationMs) => metrics.observeCommit(queue, frames, bytes, durationMs),
      },
    )
    lifecycle.onStop(`conditional commits of ${queue}`, () => commit.drain())
    return commit
  }

  const verdicts = createVerdictWaits(
    { redis: uploads, subscriber: connect(), logger },
    {
      maxWaiting: config.VERDICT_MAX_WAITING,
      deadlineMs: config.VERDICT_TIMEOUT_MS,
      pollMs: 1_000,
      onSettled: metrics.observeVerdict,
    },
  )
  lifecycle.onStop('waits for verdicts', () => verdicts.stop())
  metrics.watchVerdicts(verdicts)

  const objects = connectObjectStore(
    { ...config, S3_ENDPOINT: config.S3_PUBLIC_ENDPOINT ?? config.S3_ENDPOINT },
    // This client only signs addresses. Only fetching credentials from elsewhere may take time.
    config.COMMIT_TIMEOUT_MS,
  )
  lifecycle.onStop('object store', () => objects.close())

  return {
    deps: {
      secretKeys: createSecretKeyAuthenticator({ directory, logger }),
      releases,
      releaseLookup: createReleaseLookup(releases),
      parts: conditional('source-maps', partsRedis),
      completions: conditional('completions', completionsRedis),
      uploads,
      objects,
      verdicts,
      onPart: metrics.countPart,
      onCompletion: metrics.countCompletion,
    },
    connections: [partsRedis, completionsRedis, uploads],
  }
}
