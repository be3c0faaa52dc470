import type { DeliveryQueue } from '../alerts/calling/delivery-queue.ts'
import type { Sending } from '../alerts/calling/send-deps.ts'
import type { failingRules } from '../alerts/measuring/rule-states.ts'
import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { LetterClaims } from '../letters/letter-claims.ts'
import type { ReplayJobs } from '../letters/replay-jobs.ts'
import type { AlertRule, Attempt } from '../schemas/records/alerts.ts'
import type { QueueLoss } from '../schemas/records/installation.ts'
import type { FairSlots } from '../shared/concurrency/fair-slots.ts'
import type { Directory } from '../shared/directory/directory.ts'
import type { DirectoryMemory } from '../shared/directory/directory-memory.ts'
import type { ReleaseStore } from '../shared/directory/release-store.ts'
import type { ReleaseKey } from '../shared/ids/release-key.ts'
import type { ObjectStore } from '../shared/object-store/types.ts'
import type { KeyUsage, KeyUse } from '../shared/queue/key-usage.ts'
import type { CountedQueue } from '../shared/queue/request-counts.ts'
import type { OldestWatermarks, WatermarkSurface, Watermarks } from '../shared/queue/watermark.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { RowKind } from '../shared/runtime/retention.ts'
import type { Authenticate } from './auth/caller.ts'
import type { ReadThreads } from './grafana/threads/read-threads.ts'
import type { ReadShares } from './http/read-shares.ts'
import type { ReplayShares } from './replay/read-replay-events.ts'
import type { TraceQueues } from './traces/completeness/trace-queues.ts'

/** Everything that the routes of the API use. Only `connect.ts` and `routes.ts` see it; a route declares its own part. */
export interface ApiDeps {
  /** Counts the accepted requests of surfaces by hour of arrival in the Redis of the queues. */
  readonly acceptedRequests: (asked: readonly CountedQueue[], hours: readonly number[]) => Promise<number[][]>
  readonly authenticate: Authenticate
  readonly clickhouse: ClickHouseClient
  /** Refuses what would fill the Redis of the directory. */
  readonly directoryMemory: Pick<DirectoryMemory, 'refuse'>
  readonly directory: Directory
  /** Means of sending to receivers of alerts. Undefined where none can be stored. */
  readonly deliveries: Sending | undefined
  /** The deliveries of all workspaces. */
  readonly deliveryQueue: Pick<DeliveryQueue, 'find' | 'replay'>
  /** Returns the last attempts to send alerts of a workspace, the latest first. */
  readonly lastAttempts: (workspaceId: string, limit: number) => Promise<Attempt[]>
  /** Returns what the rules of a workspace cannot measure now. */
  readonly failingRules: (workspaceId: string, rules: readonly AlertRule[]) => ReturnType<typeof failingRules>
  /** Server secret from which, with the salt of each creation, the secrets of keys are derived. */
  readonly keyPepper: string
  /** Reads the last use of keys, and their requests of today, from the Redis of the queues. */
  readonly keyUse: (workspaceId: string, keyIds: readonly string[]) => Promise<KeyUse[]>
  /** Reads the usage of the public keys of a workspace on a day from the Redis of the queues. */
  readonly keyUsage: (workspaceId: string, day: number) => Promise<KeyUsage[]>
  /** Returns the first day whose data of a kind is shown to readers of a workspace, in days since 1970. */
  readonly firstKeptDay: (workspaceId: string, kind: RowKind) => Promise<number>
  /** Slots for large traces. */
  readonly largeTraces: Pick<FairSlots, 'run'>
  readonly letterClaims: LetterClaims
  /** Objects of dead letters, which a purge changes. */
  readonly letterObjects: Pick<ObjectStore, 'head' | 'get' | 'put' | 'deleteMany'>
  /** Slots for steps of replays and purges of dead letters. */
  readonly letterSteps: Pick<FairSlots, 'acquire'>
  readonly logger: Logger
  /** Slots for lists of findings. */
  readonly findingLists: Pick<FairSlots, 'run'>
  /** Most stored records that one query of a search of logs reads. */
  readonly logSearchRows: number
  /** Slots for searches of logs. */
  readonly logSearches: Pick<FairSlots, 'run'>
  /** Slots for reads of metrics. */
  readonly metricReads: Pick<FairSlots, 'run'>
  /** Slots for pages of manifests. */
  readonly manifestPages: Pick<FairSlots, 'run'>
  readonly now: () => number
  readonly objects: Pick<ObjectStore, 'getStream' | 'head'>
  /** Slots for reads of the history of the pipeline. */
  readonly pipelineReads: Pick<FairSlots, 'run'>
  readonly queryTimeoutMs: number
  /** Reads the watermarks of all surfaces together from the Redis of the queues. */
  readonly oldestWatermarks: () => Promise<OldestWatermarks>
  /** Removes the uploads of a release from the Redis of the queues. */
  readonly removeUploads: (release: ReleaseKey) => Promise<void>
  readonly receiptSecrets: () => Promise<readonly Buffer[]>
  /** Reads the losses of the queues from the directory. */
  readonly queueLosses: () => Promise<readonly QueueLoss[]>
  readonly releases: Pick<ReleaseStore, 'release' | 'releases' | 'manifest' | 'remove'>
  readonly replayJobs: Pick<ReplayJobs, 'add'>
  readonly replayShares: ReplayShares
  readonly retentionDays: number
  /** Slots for reads of the statistics of spans. */
  readonly serviceReads: Pick<FairSlots, 'run'>
  /** Slots for lists and timelines of sessions. */
  readonly sessionReads: Pick<FairSlots, 'run'>
  readonly shares: ReadShares
  /** Threads for responses whose computation takes long. */
  readonly threads: Pick<ReadThreads, 'run'>
  /** Watermark and refusals of requests with spans. */
  readonly traceQueues: TraceQueues
  /** Slots for searches of traces. */
  readonly traceSearches: Pick<FairSlots, 'run'>
  /** Reads the watermarks of surfaces from the Redis of the queues. */
  readonly watermarks: (surfaces: readonly WatermarkSurface[]) => Promise<Watermarks>
}
