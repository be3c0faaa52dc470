import type { Route } from '../shared/http/route.ts'
import { alertRoutes } from './alerts/alerts.ts'
import { deliveryRoutes } from './alerts/deliveries.ts'
import { tryRuleRoute } from './alerts/try-rule.ts'
import { changeRoutes } from './changes.ts'
import { letterChangeRoutes } from './dead-letters/change-letters.ts'
import { letterReadRoutes } from './dead-letters/read-letters.ts'
import type { ApiDeps } from './deps.ts'
import { droppingRoutes } from './dropping.ts'
import { erasureRoutes } from './erasures.ts'
import { findingRoutes } from './findings/finding.ts'
import { listFindingsRoute } from './findings/list-findings.ts'
import { findingRuleRoutes } from './findings/rules.ts'
import { findingWorkRoutes } from './findings/work/change-findings.ts'
import { findingMergeRoutes } from './findings/work/merge-findings.ts'
import { jaegerRoutes } from './grafana/jaeger/routes.ts'
import { exemplarRoutes } from './grafana/prometheus/exemplars.ts'
import { createFollowMetric } from './grafana/prometheus/follow-metric.ts'
import { labelRoutes } from './grafana/prometheus/labels.ts'
import { queryRoutes } from './grafana/prometheus/query.ts'
import { tempoRoutes } from './grafana/tempo/routes.ts'
import { logRoutes } from './logs/logs.ts'
import { mcpRoute } from './mcp/mcp-route.ts'
import { memberRoutes } from './members.ts'
import { metricRoutes } from './metrics/metrics.ts'
import { listWatermarksRoute } from './pipeline/list-watermarks.ts'
import { readPipelineRoute } from './pipeline/read-pipeline.ts'
import { readReceiptRoute } from './receipts.ts'
import { releaseRoutes } from './releases/releases.ts'
import { readReplayRoute } from './replay/read-replay.ts'
import { readReplayEventsRoute } from './replay/read-replay-events.ts'
import { retentionRoutes } from './retention.ts'
import { scrubbingRoutes } from './scrubbing.ts'
import { serviceMapRoute } from './services/service-map.ts'
import { serviceRoutes } from './services/services.ts'
import { listSessionsRoute } from './sessions/list-sessions.ts'
import { readSessionRoute } from './sessions/session.ts'
import { readTimelineRoute } from './sessions/timeline.ts'
import { listTracesRoute } from './traces/search/list-traces.ts'
import { suggestionsRoute } from './traces/search/suggestions.ts'
import { traceRoutes } from './traces/traces.ts'
import { usageRoutes } from './usage.ts'
import { versionsRoute } from './versions.ts'
import { surfaceKeyRoutes } from './workspaces/surface-keys.ts'
import { surfaceRoutes } from './workspaces/surfaces.ts'
import { workspaceKeyRoutes } from './workspaces/workspace-keys.ts'

/** Returns every route of the API, for any process that mounts them. */
export function createApiRoutes(deps: ApiDeps): readonly Route[] {
  return [
    ...traceRoutes(deps),
    listTracesRoute(deps),
    suggestionsRoute(deps),
    ...serviceRoutes(deps),
    serviceMapRoute(deps),
    versionsRoute(deps),
    ...tempoRoutes(deps),
    ...jaegerRoutes(deps),
    ...logRoutes(deps),
    ...metricRoutes(deps),
    ...queryRoutes(deps),
    ...labelRoutes(deps),
    ...exemplarRoutes(deps),
    mcpRoute(deps),
    listFindingsRoute(deps),
    ...findingRoutes(deps),
    ...findingWorkRoutes(deps),
    ...findingMergeRoutes(deps),
    ...findingRuleRoutes(deps),
    listSessionsRoute(deps),
    readSessionRoute(deps),
    readTimelineRoute(deps),
    readReplayRoute(deps),
    readReplayEventsRoute(deps),
    ...surfaceRoutes(deps),
    ...surfaceKeyRoutes(deps),
    ...workspaceKeyRoutes(deps),
    ...memberRoutes(deps),
    ...changeRoutes(deps),
    ...usageRoutes(deps),
    ...releaseRoutes(deps),
    readReceiptRoute(deps),
    ...letterReadRoutes(deps),
    ...letterChangeRoutes(deps),
    ...retentionRoutes(deps),
    ...scrubbingRoutes(deps),
    ...droppingRoutes(deps),
    ...alertRoutes(deps),
    ...deliveryRoutes(deps),
    tryRuleRoute({ ...deps, followMetric: createFollowMetric(deps) }),
    ...erasureRoutes(deps),
    listWatermarksRoute(deps),
    readPipelineRoute(deps),
  ]
}
