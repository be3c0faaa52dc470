import type { Problem } from '../schemas/http/problems.ts'
import type { AdmittedQueue, IngestQueue } from '../schemas/queues/names.ts'
import type { DirectoryMemory } from '../shared/directory/directory-memory.ts'
import type { ReleaseStore } from '../shared/directory/release-store.ts'
import type { RequestCounter } from '../shared/http/route.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { MetadataFault } from './admission/replay-metadata.ts'
import type { SecretKeyAuthenticator } from './auth/authenticate-build.ts'
import type { PublicKeyAuthenticator } from './auth/authenticate-surface.ts'
import type { ReleaseLookup } from './auth/release-lookup.ts'
import type { Sink } from './commit/sink.ts'
import type { CompletionOutcome } from './releases/accept-completion.ts'
import type { ClaimOutcome } from './releases/claim-part.ts'
import type { SignMapsDeps } from './releases/sign-maps.ts'
import type { VerdictWaits } from './releases/verdict-waits.ts'

/**
 * Everything that the routes of the edge use. Only `connect.ts` and `routes.ts` see all of it: each route declares the
 * members that it uses.
 */
export interface IngestDeps extends BuildDeps {
  readonly publicKeys: PublicKeyAuthenticator
  /** The sink of each queue that is written by group commits. */
  readonly sinks: Readonly<Record<IngestQueue, Sink>>
  /** Returns the counter of the requests for a queue. */
  readonly counterOf: (queue: AdmittedQueue) => RequestCounter
  /** Display names of the identity providers whose identities are accepted. */
  readonly identityProviders: readonly string[]
  /** Called for a replay chunk that is acknowledged without a key and not kept. */
  readonly onReplayIgnored: (reason: MetadataFault) => void
  readonly logger: Logger
  readonly now: () => number
}

/** Dependencies that only the routes with a secret key use. */
export interface BuildDeps {
  readonly secretKeys: SecretKeyAuthenticator
  readonly releases: Pick<ReleaseStore, 'register' | 'manifest'>
  readonly releaseLookup: ReleaseLookup
  /** The sink of parts, which are claimed, in the queue `source-maps`. */
  readonly parts: Sink
  /** The sink of the queue `completions`. */
  readonly completions: Sink
  readonly signing: SignMapsDeps
  /** Returns INGEST_BACKPRESSURE when Redis is nearly full, for requests that write to it without a queue. */
  readonly refuseForMemory: () => Problem | undefined
  /** Refuses what would fill the Redis of the directory. */
  readonly directoryMemory: Pick<DirectoryMemory, 'refuse'>
  readonly verdicts: VerdictWaits
  readonly onPart: (outcome: ClaimOutcome) => void
  readonly onCompletion: (outcome: CompletionOutcome) => void
}
