import { z } from 'zod'
import { listDeliveries, readDelivery, replayDelivery, testReceiver } from './alerts/deliveries.ts'
import { readAlerts, replaceAlerts } from './alerts/operations.ts'
import { tryRule } from './alerts/trial.ts'
import { listChanges } from './changes.ts'
import {
  listDeadLetters,
  purgeDeadLetters,
  readDeadLetter,
  readDeadLetterBody,
  replayDeadLetters,
} from './dead-letters.ts'
import { mergeFindings, splitFinding } from './findings/merges.ts'
import { listFindingOccurrences, readFindingValues } from './findings/occurrences.ts'
import {
  changeFinding,
  commentFinding,
  listFindingActivity,
  listFindings,
  listFindingTraces,
  readFinding,
} from './findings/operations.ts'
import { readFindingRules, replaceFindingRules, tryFindingRules } from './findings/rules.ts'
import { JAEGER_OPERATIONS } from './grafana/jaeger.ts'
import { PROMETHEUS_OPERATIONS } from './grafana/prometheus.ts'
import { TEMPO_OPERATIONS } from './grafana/tempo.ts'
import { listLogs, readLogHistogram } from './logs.ts'
import { exchangeMcp } from './mcp.ts'
import { addMember, changeMember, listMembers, removeMember } from './members.ts'
import { listMetrics, readMetricSeries } from './metrics.ts'
import type { Operation } from './operation.ts'
import { readPipeline } from './pipeline.ts'
import { readDropping, replaceDropping } from './privacy/dropping.ts'
import { createErasure, listErasures, readErasure } from './privacy/erasures.ts'
import { readRetention, replaceRetention } from './privacy/retention.ts'
import { readScrubbing, replaceScrubbing, tryScrubbing } from './privacy/scrubbing.ts'
import { readReceipt } from './receipts.ts'
import { listVersions } from './releases/health.ts'
import { deleteRelease, listReleases, readRelease, registerRelease, reportBuild } from './releases/operations.ts'
import { readReplay, readReplayEvents, uploadReplay } from './replay.ts'
import { readServiceMap } from './service-map.ts'
import { listServices, readService } from './services.ts'
import { heartbeat, identifySessionWith, listSessions, readSession, readTimeline } from './sessions/operations.ts'
import { completeSourceMaps, signSourceMaps, uploadSourceMap, uploadSourceMapPart } from './source-maps/operations.ts'
import { drain, exportOtlp } from './telemetry.ts'
import { listTraces, readCompleteness, readSpans, readTrace, readTraceColumns } from './traces/operations.ts'
import { listSuggestions } from './traces/suggestions.ts'
import { listKeyUsage, listUsage } from './usage.ts'
import { listWatermarks } from './watermarks.ts'
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

/** Reads the OpenAPI document (docs/api/requests.md#openapi). */
export const readOpenApi: Operation = {
  operationId: 'readOpenApi',
  method: 'GET',
  path: '/openapi.json',
  service: 'gateway',
  tag: 'service',
  summary: 'Read this document',
  credentials: [],
  success: {
    status: 200,
    description: 'An OpenAPI document.',
    contents: {
      'application/json': {
        schema: z.looseObject({ openapi: z.string() }).meta({ id: 'OpenApiDocument' }),
        example: { openapi: '3.0.4', info: { title: 'Penstock', version: '3.0.0' }, paths: {} },
      },
    },
  },
  isConditional: true,
  cors: true,
  // The one that every path has. The others do not name it.
  problems: [{ code: 'METHOD_NOT_ALLOWED' }],
}

/** Operations that depend on no setting, in the order of the document. */
const OPERATIONS: readonly Operation[] = [
  uploadReplay,
  readReceipt,
  listWatermarks,
  readPipeline,
  registerRelease,
  signSourceMaps,
  uploadSourceMapPart,
  uploadSourceMap,
  completeSourceMaps,
  reportBuild,
  listReleases,
  readRelease,
  deleteRelease,
  listSessions,
  readSession,
  readTimeline,
  readReplay,
  readReplayEvents,
  listFindings,
  readFinding,
  changeFinding,
  commentFinding,
  listFindingActivity,
  mergeFindings,
  splitFinding,
  listFindingTraces,
  readFindingRules,
  replaceFindingRules,
  tryFindingRules,
  listFindingOccurrences,
  readFindingValues,
  readTrace,
  listTraces,
  listSuggestions,
  readTraceColumns,
  readCompleteness,
  readSpans,
  listServices,
  readServiceMap,
  listVersions,
  readService,
  ...TEMPO_OPERATIONS,
  ...JAEGER_OPERATIONS,
  listLogs,
  readLogHistogram,
  listMetrics,
  readMetricSeries,
  ...PROMETHEUS_OPERATIONS,
  exchangeMcp,
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
  listMembers,
  addMember,
  changeMember,
  removeMember,
  listChanges,
  listUsage,
  listKeyUsage,
  readRetention,
  replaceRetention,
  readScrubbing,
  replaceScrubbing,
  tryScrubbing,
  readDropping,
  replaceDropping,
  readAlerts,
  replaceAlerts,
  testReceiver,
  tryRule,
  listDeliveries,
  readDelivery,
  replayDelivery,
  createErasure,
  listErasures,
  readErasure,
  readOpenApi,
]

/** Returns every operation of both processes, in the order of the document. */
export function allOperations({ identityProviders }: { identityProviders: readonly string[] }): readonly Operation[] {
  return [drain, exportOtlp, identifySessionWith(identityProviders), heartbeat, ...OPERATIONS]
}
