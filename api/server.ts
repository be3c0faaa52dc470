import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { Route } from '../shared/http-server.ts'
import type { Logger } from '../shared/logger.ts'
import type { ObjectStore } from '../shared/object-store.ts'
import type { ReleaseStore } from '../shared/release-store.ts'
import type { Authenticate } from './authenticate.ts'
import { listFindingTracesRoute } from './routes/list-finding-traces.ts'
import { listFindingsRoute } from './routes/list-findings.ts'
import { listReleasesRoute } from './routes/list-releases.ts'
import { readFindingRoute } from './routes/read-finding.ts'
import { readReleaseRoute } from './routes/read-release.ts'
import { readReplayRoute } from './routes/read-replay.ts'
import { readReplayEventsRoute } from './routes/read-replay-events.ts'
import { readSessionRoute } from './routes/read-session.ts'
import { readTraceRoute } from './routes/read-trace.ts'
import type { Semaphore } from './semaphore.ts'

export interface ApiDeps {
  readonly authenticate: Authenticate
  readonly clickhouse: ClickHouseClient
  readonly largeTraces: Semaphore
  readonly logger: Logger
  /** Places for pages of manifests, which may be megabytes each. */
  readonly manifestPages: Semaphore
  readonly objects: Pick<ObjectStore, 'getStream' | 'head'>
  readonly queryTimeoutMs: number
  readonly releases: Pick<ReleaseStore, 'release' | 'releases' | 'manifest'>
  /** How many replays may be read at once. */
  readonly replayStreams: number
}

/** The routes of the read API, for any process that mounts them. */
export function createApiRoutes(deps: ApiDeps): readonly Route[] {
  return [
    readTraceRoute(deps),
    listFindingsRoute(deps),
    readFindingRoute(deps),
    listFindingTracesRoute(deps),
    readSessionRoute(deps),
    readReplayRoute(deps),
    readReplayEventsRoute(deps),
    listReleasesRoute(deps),
    readReleaseRoute(deps),
  ]
}
