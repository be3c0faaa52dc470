import { SIGNAL_QUEUES, type SignalQueue } from '../schemas/jobs.ts'
import type { Route } from '../shared/http-server.ts'
import type { Logger } from '../shared/logger.ts'
import type { Admission } from './admit.ts'
import type { PublicKeyAuthenticator } from './authenticate.ts'
import type { GroupCommit } from './group-commit.ts'
import { drainRoute } from './routes/drain.ts'

export interface IngestDeps {
  readonly authenticator: PublicKeyAuthenticator
  readonly admission: Admission
  /** One group commit per queue that the edge writes to. */
  readonly commits: Readonly<Record<IngestQueue, GroupCommit>>
  readonly logger: Logger
  readonly now: () => number
}

/** Queues that requests go to; the dead letters are the workers' own. */
export const INGEST_QUEUES = Object.values(SIGNAL_QUEUES)
export type IngestQueue = SignalQueue

/** The routes of the edge, for any process that mounts them. */
export function createIngestRoutes(deps: IngestDeps): readonly Route[] {
  return [drainRoute(deps)]
}
