import type { Route } from '../shared/http/route.ts'
import type { IngestDeps } from './deps.ts'
import { completeSourceMapsRoute } from './routes/complete-source-maps.ts'
import { drainRoute, exportOtlpRoute } from './routes/export-telemetry.ts'
import { registerReleaseRoute } from './routes/register-release.ts'
import { reportBuildRoute } from './routes/report-build.ts'
import { heartbeatRoute, identifySessionRoute } from './routes/sessions.ts'
import { signSourceMapsRoute } from './routes/sign-source-maps.ts'
import { uploadReplayRoute } from './routes/upload-replay.ts'
import { uploadSourceMapRoute } from './routes/upload-source-map.ts'
import { uploadSourceMapPartRoute } from './routes/upload-source-map-part.ts'

/** Returns the routes of the edge, for any process that mounts them. */
export function createIngestRoutes(deps: IngestDeps): readonly Route[] {
  const { sinks, counterOf } = deps
  // Registering and signing have no queue of their own.
  const uploads = { ...deps, counter: counterOf('source-maps') }
  const sessions = { ...deps, sink: sinks.sessions, counter: counterOf('sessions') }
  return [
    drainRoute(deps),
    exportOtlpRoute(deps),
    identifySessionRoute(sessions),
    heartbeatRoute(sessions),
    uploadReplayRoute({ ...deps, sink: sinks.replay, counter: counterOf('replay') }),
    registerReleaseRoute(uploads),
    signSourceMapsRoute(uploads),
    uploadSourceMapPartRoute({ ...uploads, sink: deps.parts }),
    uploadSourceMapRoute({ ...uploads, sink: sinks['source-maps'] }),
    completeSourceMapsRoute({ ...deps, sink: deps.completions, counter: counterOf('completions') }),
    reportBuildRoute({ ...deps, sink: sinks['build-reports'], counter: counterOf('build-reports') }),
  ]
}
