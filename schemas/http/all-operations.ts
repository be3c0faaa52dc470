import {
  listDeadLetters,
  purgeDeadLetters,
  readDeadLetter,
  readDeadLetterBody,
  replayDeadLetters,
} from './dead-letters/operations.ts'
import { createErasure, listErasures, readErasure } from './erasures/operations.ts'
import { listFindings, listFindingTraces, readFinding } from './findings/operations.ts'
import type { Operation } from './operation.ts'
import { readReceipt } from './receipts/operations.ts'
import { deleteRelease, listReleases, readRelease, registerRelease, reportBuild } from './releases/operations.ts'
import { readReplay, readReplayEvents, uploadReplay } from './replay/operations.ts'
import { readRetention, replaceRetention } from './retention/operations.ts'
import { readOpenApi } from './service/operations.ts'
import { heartbeat, identifySessionWith, readSession } from './sessions/operations.ts'
import { completeSourceMaps, signSourceMaps, uploadSourceMap, uploadSourceMapPart } from './source-maps/operations.ts'
import { drain } from './telemetry/operations.ts'
import { readSpans, readTrace, readTraceColumns } from './traces/operations.ts'
import { listWatermarks } from './watermarks/operations.ts'
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
  updateSurfaceKey,
} from './workspaces/operations.ts'

/** Returns every operation of both processes, in the order of the document. */
export function allOperations(settings: { identityProviders: readonly string[] }): readonly Operation[] {
  return [
    drain,
    identifySessionWith(settings.identityProviders),
    heartbeat,
    uploadReplay,
    readReceipt,
    listWatermarks,
    registerRelease,
    signSourceMaps,
    uploadSourceMapPart,
    uploadSourceMap,
    completeSourceMaps,
    reportBuild,
    listReleases,
    readRelease,
    deleteRelease,
    readSession,
    readReplay,
    readReplayEvents,
    listFindings,
    readFinding,
    listFindingTraces,
    readTrace,
    readTraceColumns,
    readSpans,
    listDeadLetters,
    readDeadLetter,
    readDeadLetterBody,
    replayDeadLetters,
    purgeDeadLetters,
    listSurfaces,
    createSurface,
    deleteSurface,
    listSurfaceKeys,
    createSurfaceKey,
    updateSurfaceKey,
    revokeSurfaceKey,
    listWorkspaceKeys,
    createWorkspaceKey,
    revokeWorkspaceKey,
    readRetention,
    replaceRetention,
    createErasure,
    listErasures,
    readErasure,
    readOpenApi,
  ]
}
