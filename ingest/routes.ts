import type { IngestQueue } from '../schemas/queues/names.ts'
import type { Route } from '../shared/http/server.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { Admission } from './admission/admission.ts'
import type { MetadataFault } from './admission/replay-metadata.ts'
import type { PublicKeyAuthenticator } from './auth/authenticate-surface.ts'
import type { GroupCommit } from './commit/group-commit.ts'
import type { BuildDeps } from './connect-builds.ts'
import { completeSourceMapsRoute } from './routes/complete-source-maps.ts'
import { drainRoute } from './routes/drain.ts'
import { heartbeatRoute } from './routes/heartbeat.ts'
import { identifySessionRoute } from './routes/identify-session.ts'
import { registerReleaseRoute } from './routes/register-release.ts'
import { reportBuildRoute } from './routes/report-build.ts'
import { signSourceMapsRoute } from './routes/sign-source-maps.ts'
import { uploadReplayRoute } from './routes/upload-replay.ts'
import { uploadSourceMapRoute } from './routes/upload-source-map.ts'
import { uploadSourceMapPartRoute } from './routes/upload-source-map-part.ts'

export interface IngestDeps {
  readonly authenticator: PublicKeyAuthenticator
  readonly admission: Admission
  /** One group commit per queue that the edge writes to. */
  readonly commits: Readonly<Record<IngestQueue, GroupCommit>>
  /** Display names of the identity providers whose identities are taken. */
  readonly identityProviders: readonly string[]
  /** A replay chunk was acknowledged without a key, and is not kept. */
  readonly onReplayIgnored: (reason: MetadataFault) => void
  /** What the routes of secret keys need. */
  readonly builds: BuildDeps
  readonly logger: Logger
  readonly now: () => number
}

/** The routes of the edge, for any process that mounts them. */
export function createIngestRoutes(deps: IngestDeps): readonly Route[] {
  return [
    drainRoute(deps),
    identifySessionRoute(deps),
    heartbeatRoute(deps),
    uploadReplayRoute(deps),
    registerReleaseRoute(deps),
    signSourceMapsRoute(deps),
    uploadSourceMapPartRoute(deps),
    uploadSourceMapRoute(deps),
    completeSourceMapsRoute(deps),
    reportBuildRoute(deps),
  ]
}
