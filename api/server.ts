import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { ReleaseStore } from '../shared/directory/release-store.ts'
import type { Route } from '../shared/http/server.ts'
import type { ObjectStore } from '../shared/object-store/object-store.ts'
import type { ControlDeps } from './guarded-control.ts'
import { createSurfaceRoute } from './routes/create-surface.ts'
import { createSurfaceKeyRoute } from './routes/create-surface-key.ts'
import { createWorkspaceKeyRoute } from './routes/create-workspace-key.ts'
import { deleteSurfaceRoute } from './routes/delete-surface.ts'
import { listFindingTracesRoute } from './routes/list-finding-traces.ts'
import { listFindingsRoute } from './routes/list-findings.ts'
import { listReleasesRoute } from './routes/list-releases.ts'
import { listSurfaceKeysRoute } from './routes/list-surface-keys.ts'
import { listSurfacesRoute } from './routes/list-surfaces.ts'
import { listWorkspaceKeysRoute } from './routes/list-workspace-keys.ts'
import { readFindingRoute } from './routes/read-finding.ts'
import { readReceiptRoute } from './routes/read-receipt.ts'
import { readReleaseRoute } from './routes/read-release.ts'
import { readReplayRoute } from './routes/read-replay.ts'
import { readReplayEventsRoute } from './routes/read-replay-events.ts'
import { readSessionRoute } from './routes/read-session.ts'
import { readTraceRoute } from './routes/read-trace.ts'
import { revokeSurfaceKeyRoute } from './routes/revoke-surface-key.ts'
import { revokeWorkspaceKeyRoute } from './routes/revoke-workspace-key.ts'
import type { Semaphore } from './semaphore.ts'

export interface ApiDeps extends ControlDeps {
  readonly clickhouse: ClickHouseClient
  readonly largeTraces: Semaphore
  /** Places for pages of manifests, which may be megabytes each. */
  readonly manifestPages: Semaphore
  readonly objects: Pick<ObjectStore, 'getStream' | 'head'>
  readonly queryTimeoutMs: number
  /** What the ids of receipts are sealed with. Asked each time, as keys are: it may have come from another installation. */
  readonly receiptSecret: () => Promise<Buffer | undefined>
  readonly retentionDays: number
  readonly releases: Pick<ReleaseStore, 'release' | 'releases' | 'manifest'>
  /** How many replays may be read at once. */
  readonly replayStreams: number
}

/** The routes of the API, for any process that mounts them. */
export function createApiRoutes(deps: ApiDeps): readonly Route[] {
  return [
    readTraceRoute(deps),
    listFindingsRoute(deps),
    readFindingRoute(deps),
    listFindingTracesRoute(deps),
    readSessionRoute(deps),
    readReplayRoute(deps),
    readReplayEventsRoute(deps),
    listSurfacesRoute(deps),
    createSurfaceRoute(deps),
    deleteSurfaceRoute(deps),
    listSurfaceKeysRoute(deps),
    createSurfaceKeyRoute(deps),
    revokeSurfaceKeyRoute(deps),
    listWorkspaceKeysRoute(deps),
    createWorkspaceKeyRoute(deps),
    revokeWorkspaceKeyRoute(deps),
    listReleasesRoute(deps),
    readReleaseRoute(deps),
    readReceiptRoute(deps),
  ]
}
