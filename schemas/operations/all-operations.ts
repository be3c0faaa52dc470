import type { Operation } from '../openapi/operation.ts'
import {
  completeSourceMaps,
  registerRelease,
  reportBuild,
  signSourceMaps,
  uploadSourceMap,
  uploadSourceMapPart,
} from './builds.ts'
import { listFindings, listFindingTraces, readFinding, readTrace } from './findings.ts'
import { readReceipt } from './receipts.ts'
import { listReleases, readRelease } from './releases.ts'
import { readOpenApi } from './service.ts'
import { heartbeat, identifySession, readReplay, readReplayEvents, readSession, uploadReplay } from './sessions.ts'
import { drain } from './telemetry.ts'
import {
  createSurface,
  createSurfaceKey,
  createWorkspaceKey,
  deleteSurface,
  listSurfaceKeys,
  listSurfaces,
  listWorkspaceKeys,
  revokeSurfaceKey,
  revokeWorkspaceKey,
} from './workspaces.ts'

/** Every operation, of both processes, in the order in which the document has them. */
export function allOperations(settings: { identityProviders: readonly string[] }): readonly Operation[] {
  return [
    drain,
    identifySession(settings.identityProviders),
    heartbeat,
    uploadReplay,
    readReceipt,
    registerRelease,
    signSourceMaps,
    uploadSourceMapPart,
    uploadSourceMap,
    completeSourceMaps,
    reportBuild,
    listReleases,
    readRelease,
    readSession,
    readReplay,
    readReplayEvents,
    listFindings,
    readFinding,
    listFindingTraces,
    readTrace,
    listSurfaces,
    createSurface,
    deleteSurface,
    listSurfaceKeys,
    createSurfaceKey,
    revokeSurfaceKey,
    listWorkspaceKeys,
    createWorkspaceKey,
    revokeWorkspaceKey,
    readOpenApi,
  ]
}
