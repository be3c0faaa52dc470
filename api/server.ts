import type { ClickHouseClient } from '../clickhouse/client.ts'
import type { Route } from '../shared/http-server.ts'
import type { Logger } from '../shared/logger.ts'
import type { Authenticate } from './authenticate.ts'
import { listFindingTracesRoute } from './routes/list-finding-traces.ts'
import { listFindingsRoute } from './routes/list-findings.ts'
import { readFindingRoute } from './routes/read-finding.ts'
import { readTraceRoute } from './routes/read-trace.ts'
import type { Semaphore } from './semaphore.ts'

export interface ApiDeps {
  readonly authenticate: Authenticate
  readonly clickhouse: ClickHouseClient
  readonly largeTraces: Semaphore
  readonly logger: Logger
  readonly queryTimeoutMs: number
}

/** The routes of the read API, for any process that mounts them. */
export function createApiRoutes(deps: ApiDeps): readonly Route[] {
  return [readTraceRoute(deps), listFindingsRoute(deps), readFindingRoute(deps), listFindingTracesRoute(deps)]
}
