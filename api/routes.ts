import type { Route } from '../shared/http/route.ts'
import { listChangesRoute } from './changes/list-changes.ts'
import { listDeadLettersRoute } from './dead-letters/list-dead-letters.ts'
import { purgeDeadLettersRoute } from './dead-letters/purge-dead-letters.ts'
import { readDeadLetterRoute } from './dead-letters/read-dead-letter.ts'
import { readDeadLetterBodyRoute } from './dead-letters/read-dead-letter-body.ts'
import { replayDeadLettersRoute } from './dead-letters/replay-dead-letters.ts'
import type { ApiDeps } from './deps.ts'
import { createErasureRoute } from './erasures/create-erasure.ts'
import { listErasuresRoute } from './erasures/list-erasures.ts'
import { readErasureRoute } from './erasures/read-erasure.ts'
import { listFindingTracesRoute } from './findings/list-finding-traces.ts'
import { listFindingsRoute } from './findings/list-findings.ts'
import { readFindingRoute } from './findings/read-finding.ts'
import { changeFindingRoute } from './findings/work/change-finding.ts'
import { commentFindingRoute } from './findings/work/comment-finding.ts'
import { listFindingActivityRoute } from './findings/work/list-finding-activity.ts'
import { listLogsRoute } from './logs/list-logs.ts'
import { readLogHistogramRoute } from './logs/read-log-histogram.ts'
import { mcpRoute } from './mcp/mcp-route.ts'
import { addMemberRoute } from './members/add-member.ts'
import { changeMemberRoute } from './members/change-member.ts'
import { listMembersRoute } from './members/list-members.ts'
import { removeMemberRoute } from './members/remove-member.ts'
import { listMetricsRoute } from './metrics/list-metrics.ts'
import { labelRoutes } from './metrics/prometheus/labels.ts'
import { queryRoutes } from './metrics/prometheus/query.ts'
import { readMetricSeriesRoute } from './metrics/read-metric-series.ts'
import { listWatermarksRoute } from './pipeline/list-watermarks.ts'
import { readPipelineRoute } from './pipeline/read-pipeline.ts'
import { readReceiptRoute } from './receipts/read-receipt.ts'
import { deleteReleaseRoute } from './releases/delete-release.ts'
import { listReleasesRoute } from './releases/list-releases.ts'
import { readReleaseRoute } from './releases/read-release.ts'
import { readReplayRoute } from './replay/read-replay.ts'
import { readReplayEventsRoute } from './replay/read-replay-events.ts'
import { readRetentionRoute } from './retention/read-retention.ts'
import { replaceRetentionRoute } from './retention/replace-retention.ts'
import { listSessionsRoute } from './sessions/list/list-sessions.ts'
import { readSessionRoute } from './sessions/read-session.ts'
import { readTimelineRoute } from './sessions/timeline/read-timeline.ts'
import { readTraceColumnsRoute } from './traces/columns/read-trace-columns.ts'
import { readCompletenessRoute } from './traces/completeness/read-completeness.ts'
import { jaegerRoutes } from './traces/jaeger/routes.ts'
import { readTraceRoute } from './traces/read-trace.ts'
import { listTracesRoute } from './traces/search/list-traces.ts'
import { readSpansRoute } from './traces/spans/read-spans.ts'
import { tempoRoutes } from './traces/tempo/routes.ts'
import { listKeyUsageRoute } from './usage/list-key-usage.ts'
import { listUsageRoute } from './usage/list-usage.ts'
import { createSurfaceRoute } from './workspaces/create-surface.ts'
import { createSurfaceKeyRoute } from './workspaces/create-surface-key.ts'
import { createWorkspaceKeyRoute } from './workspaces/create-workspace-key.ts'
import { deleteSurfaceRoute } from './workspaces/delete-surface.ts'
import { listSurfaceKeysRoute } from './workspaces/list-surface-keys.ts'
import { listSurfacesRoute } from './workspaces/list-surfaces.ts'
import { listWorkspaceKeysRoute } from './workspaces/list-workspace-keys.ts'
import { revokeSurfaceKeyRoute } from './workspaces/revoke-surface-key.ts'
import { revokeWorkspaceKeyRoute } from './workspaces/revoke-workspace-key.ts'
import { updateSurfaceKeyRoute } from './workspaces/update-surface-key.ts'

/** Returns every route of the API, for any process that mounts them. */
export function createApiRoutes(deps: ApiDeps): readonly Route[] {
  return [
    readTraceRoute(deps),
    listTracesRoute(deps),
    readTraceColumnsRoute(deps),
    readCompletenessRoute(deps),
    readSpansRoute(deps),
    ...tempoRoutes(deps),
    ...jaegerRoutes(deps),
    listLogsRoute(deps),
    readLogHistogramRoute(deps),
    listMetricsRoute(deps),
    readMetricSeriesRoute(deps),
    ...queryRoutes(deps),
    ...labelRoutes(deps),
    mcpRoute(deps),
    listFindingsRoute(deps),
    readFindingRoute(deps),
    changeFindingRoute(deps),
    commentFindingRoute(deps),
    listFindingActivityRoute(deps),
    listFindingTracesRoute(deps),
    listSessionsRoute(deps),
    readSessionRoute(deps),
    readTimelineRoute(deps),
    readReplayRoute(deps),
    readReplayEventsRoute(deps),
    listSurfacesRoute(deps),
    createSurfaceRoute(deps),
    deleteSurfaceRoute(deps),
    listSurfaceKeysRoute(deps),
    createSurfaceKeyRoute(deps),
    updateSurfaceKeyRoute(deps),
    revokeSurfaceKeyRoute(deps),
    listWorkspaceKeysRoute(deps),
    createWorkspaceKeyRoute(deps),
    revokeWorkspaceKeyRoute(deps),
    listMembersRoute(deps),
    addMemberRoute(deps),
    changeMemberRoute(deps),
    removeMemberRoute(deps),
    listChangesRoute(deps),
    listUsageRoute(deps),
    listKeyUsageRoute(deps),
    listReleasesRoute(deps),
    readReleaseRoute(deps),
    deleteReleaseRoute(deps),
    readReceiptRoute(deps),
    listDeadLettersRoute(deps),
    readDeadLetterRoute(deps),
    readDeadLetterBodyRoute(deps),
    replayDeadLettersRoute(deps),
    purgeDeadLettersRoute(deps),
    readRetentionRoute(deps),
    replaceRetentionRoute(deps),
    createErasureRoute(deps),
    listErasuresRoute(deps),
    readErasureRoute(deps),
    listWatermarksRoute(deps),
    readPipelineRoute(deps),
  ]
}
