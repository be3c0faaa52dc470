import { randomUUID } from 'node:crypto'
import { HOUR_MS } from '../../../schemas/units.ts'
import { encodeReplayMetadata } from '../clients/encode-replay-metadata.ts'
import { entryOf, mapOf } from '../clients/release-client.ts'
import { SERVICE } from './example-export.ts'

/** Ids that a request may contain, of one workspace or of resources that do not exist. */
export interface Things {
  readonly slug: string
  readonly surfaceId: string
  readonly surfaceKeyId: string
  readonly apiKeyId: string
  /** A member besides the one whose credentials are used. */
  readonly memberId: string
  readonly sessionId: string
  /** Identifier of the user of both sessions. */
  readonly userIdentifier: string
  readonly findingId: string
  readonly traceId: string
  readonly spanId: string
  readonly metricName: string
  readonly releaseSlug: string
  /** SHA-256 of a source map that the release has. */
  readonly mapHash: string
  readonly receiptId: string
  readonly erasureId: string
  readonly deliveryId: string
  /** Id of a dead letter. */
  readonly letterId: string
}

/** Ids that the service issues. Any workspace may use the session id, trace id or hash of another workspace for its own data. */
export const GIVEN_IDS = [
  'slug',
  'surfaceId',
  'surfaceKeyId',
  'apiKeyId',
  'findingId',
  'releaseSlug',
  'receiptId',
  'erasureId',
  'deliveryId',
  'letterId',
] as const

/** Kinds of credentials of a tenant. */
export const CREDENTIAL_KINDS = ['publicKey', 'secretKey', 'workspaceKey', 'sessionToken', 'workload'] as const
/** Kind of a credential. */
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number]

/** Operation with its credentials, its request and its response to other workspaces. */
export interface MatrixRow {
  /** Method and path of the route. */
  readonly operation: string
  /** Kinds of credentials that the operation accepts. */
  readonly takes: readonly CredentialKind[]
  /**
   * Response to a caller whose path contains ids of another workspace. `absent`: the same as for ids that do not exist,
   * which is 404. `own`: the caller chooses the ids, or there are none, and only data of the caller is shown or written.
   */
  readonly foreign: 'absent' | 'own'
  /** Builds a valid request for these ids; `query` is added to the path of a list. */
  readonly request: (things: Things, query: string) => MatrixRequest
}

/** Request of a row. */
interface MatrixRequest {
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** The receiver and the rule of every tenant. Stored again as they are, they stay, whatever the revision. */
export const RECEIVER = { name: 'on-call', channel: 'email' } as const
export const ALERT_RULE = { name: 'new', kinds: ['finding.created'] } as const

const READERS: readonly CredentialKind[] = ['sessionToken', 'workload', 'workspaceKey']
const MANAGERS: readonly CredentialKind[] = ['sessionToken', 'workspaceKey']
const USERS: readonly CredentialKind[] = ['sessionToken']
const TELEMETRY: readonly CredentialKind[] = ['publicKey']
const BUILDS: readonly CredentialKind[] = ['secretKey']

/** Text that the rows write, recognizable where it must not appear. */
export const INTRUDER = 'intruder'

/** Paths of source maps: of each tenant's manifest, of a part and of a single upload that are in no manifest yet. */
export const MAP_PATHS = { held: 'app.js.map', part: 'part.js.map', single: 'single.js.map' } as const
/** Version of the release of each tenant. */
export const RELEASE_VERSION = '1.0.0'

/** The same each time, so that the request is the same however often it is made. */
const IDEMPOTENCY_KEY = randomUUID()

const intruderMap = mapOf(INTRUDER)

/** Time of a search that contains everything that the tenants send. It is the same each time. */
const AROUND_NOW = new URLSearchParams({
  from: new Date(Date.now() - HOUR_MS).toISOString(),
  to: new Date(Date.now() + HOUR_MS).toISOString(),
})

/** The same in Unix seconds, as clients of Prometheus send it. */
const PROMETHEUS_RANGE = new URLSearchParams({
  start: String(Math.floor(Date.now() / 1_000) - 3_600),
  end: String(Math.floor(Date.now() / 1_000) + 3_600),
})

/** Parameters of a query of everything that a metric had in the last hour. */
function promql(metricName: string, parameter = 'query'): string {
  const selector = `{"${metricName}"}`
  const query = parameter === 'query' ? `last_over_time(${selector}[2h])` : selector
  return String(new URLSearchParams({ [parameter]: query, time: String(PROMETHEUS_RANGE.get('end')) }))
}

/**
 * A row for each operation that the processes mount; several where the resource can be named in several ways.
 * A new route needs a new row:
 *
 *     row('GET /v3/things/:thingId', READERS, 'absent', ({ thingId }) => ({ path: `/v3/things/${thingId}` }))
 *
 * and for a new kind of id a field of `Things`, with one that is nowhere and one of each tenant (`tenant.ts`).
 */
export const ISOLATION_MATRIX: readonly MatrixRow[] = [
  // Before the rows that write data of the caller with ids of the other's traces and sessions.
  tool('list_findings', () => ({})),
  tool('get_finding', ({ findingId }) => ({ findingId })),
  tool('search_traces', () => ({})),
  tool('search_traces', ({ sessionId }) => ({ session: sessionId })),
  tool('outline_trace', ({ traceId }) => ({ traceId })),
  tool('get_spans', ({ traceId, spanId }) => ({ traceId, spanIds: [spanId] })),
  tool('search_logs', () => ({})),
  tool('search_logs', ({ traceId }) => ({ trace: traceId })),
  tool('pipeline_health', () => ({})),
  tool('session_timeline', ({ sessionId }) => ({ sessionId, kinds: 'span,log,finding,heartbeat,replay' })),

  row('POST /drain/v1/:signal', TELEMETRY, 'own', things => ({ path: '/drain/v1/traces', body: failedSpan(things) })),
  row('POST /v1/:signal', TELEMETRY, 'own', things => ({ path: '/v1/traces', body: failedSpan(things) })),
  row('POST /v3/session/identify', TELEMETRY, 'own', ({ sessionId }) => ({
    path: '/v3/session/identify',
    body: { sessionId, identifier: INTRUDER, source: { type: 'custom', name: 'ours' } },
  })),
  row('POST /v3/session', TELEMETRY, 'own', ({ sessionId }) => ({ path: '/v3/session', body: { sessionId } })),
  row('POST /v3/replay/upload/:sessionId', TELEMETRY, 'own', ({ sessionId }) => ({
    path: `/v3/replay/upload/${sessionId}`,
    body: `{"type":2,"timestamp":1700000000000,"data":"${INTRUDER}"}\n`,
    headers: {
      'content-type': 'application/octet-stream',
      'x-replay-metadata': encodeReplayMetadata({ windowId: 'w', segmentId: 0, firstTs: 1, lastTs: 2 }),
    },
  })),

  row('POST /v3/releases', BUILDS, 'own', () => ({ path: '/v3/releases', body: { version: RELEASE_VERSION } })),
  row('POST /v3/releases/:releaseSlug/source-maps/sign', BUILDS, 'absent', ({ releaseSlug, mapHash }) => ({
    path: `/v3/releases/${releaseSlug}/source-maps/sign`,
    body: { files: [{ path: MAP_PATHS.held, size: 100, hash: mapHash }] },
  })),
  row('PUT /v3/releases/:releaseSlug/source-maps', BUILDS, 'own', ({ releaseSlug }) => ({
    path: `/v3/releases/${releaseSlug}/source-maps?part=0&path=${MAP_PATHS.part}`,
    body: intruderMap.toString(),
    headers: { 'content-type': 'application/octet-stream' },
  })),
  row('PUT /v3/releases/:releaseSlug/source-maps/upload', BUILDS, 'own', ({ releaseSlug }) => ({
    path: `/v3/releases/${releaseSlug}/source-maps/upload?path=${MAP_PATHS.single}`,
    body: intruderMap.toString(),
  })),
  row('POST /v3/releases/:releaseSlug/source-maps/complete', BUILDS, 'absent', ({ releaseSlug, mapHash }) => ({
    path: `/v3/releases/${releaseSlug}/source-maps/complete`,
    body: {
      files: [entryOf({ path: 'elsewhere.js.map', bytes: intruderMap }, { hash: mapHash })],
      sourceFileCount: 1,
    },
  })),
  row('POST /v3/releases/:releaseSlug/telemetry', BUILDS, 'own', ({ releaseSlug }) => ({
    path: `/v3/releases/${releaseSlug}/telemetry`,
    body: { result: 'pipeline_failed' },
  })),
  read('GET /v3/releases', 'own', (_, query) => `/v3/releases?${query}`),
  read('GET /v3/releases/:releaseSlug', 'absent', ({ releaseSlug }, query) => `/v3/releases/${releaseSlug}?${query}`),

  row('DELETE /v3/releases/:releaseSlug', MANAGERS, 'absent', ({ releaseSlug }) => ({
    path: `/v3/releases/${releaseSlug}`,
  })),

  read('GET /v3/findings', 'own', (_, query) => `/v3/findings?${query}`),
  read('GET /v3/findings', 'own', (_, query) => `/v3/findings?occurrences=true&${query}`),
  read('GET /v3/findings', 'own', ({ surfaceId }) => `/v3/findings?surface=${surfaceId}`),
  read('GET /v3/findings/:findingId', 'absent', ({ findingId }) => `/v3/findings/${findingId}`),
  read('GET /v3/findings', 'own', (_, query) => `/v3/findings?status=open&${query}`),
  read('GET /v3/finding-rules', 'own', () => '/v3/finding-rules'),
  row('PUT /v3/finding-rules', MANAGERS, 'own', () => ({
    path: '/v3/finding-rules',
    body: { revision: 0, rules: [{ name: INTRUDER, type: '*', title: INTRUDER }] },
  })),
  row('POST /v3/finding-rules/try', READERS, 'own', () => ({
    path: '/v3/finding-rules/try',
    body: { rules: [{ name: 'all', type: '*', fingerprint: 'all' }] },
  })),
  read('GET /v3/scrubbing', 'own', () => '/v3/scrubbing'),
  row('PUT /v3/scrubbing', MANAGERS, 'own', () => ({
    path: '/v3/scrubbing',
    body: { revision: 0, rules: [{ name: INTRUDER, keys: [INTRUDER], action: 'mask' }] },
  })),
  row('POST /v3/scrubbing/try', MANAGERS, 'own', () => ({
    path: '/v3/scrubbing/try',
    body: { attributes: { password: 'x' } },
  })),
  read('GET /v3/dropping', 'own', () => '/v3/dropping'),
  row('PUT /v3/dropping', MANAGERS, 'own', () => ({
    path: '/v3/dropping',
    body: { revision: 0, rules: [{ name: INTRUDER, names: [INTRUDER] }] },
  })),
  read('GET /v3/alerts', 'own', () => '/v3/alerts'),
  read('GET /v3/alerts/deliveries', 'own', () => '/v3/alerts/deliveries'),
  read('GET /v3/alerts/deliveries/:deliveryId', 'absent', ({ deliveryId }) => `/v3/alerts/deliveries/${deliveryId}`),
  row('POST /v3/alerts/deliveries/:deliveryId/replay', MANAGERS, 'absent', ({ deliveryId }) => ({
    path: `/v3/alerts/deliveries/${deliveryId}/replay`,
    body: {},
  })),
  row('PUT /v3/alerts', MANAGERS, 'own', () => ({
    path: '/v3/alerts',
    body: { revision: 0, receivers: [RECEIVER], rules: [ALERT_RULE] },
  })),
  row('POST /v3/alerts/try', READERS, 'own', () => ({ path: '/v3/alerts/try', body: { rule: ALERT_RULE } })),
  row('POST /v3/alerts/test', MANAGERS, 'own', () => ({
    path: '/v3/alerts/test',
    body: { receiver: RECEIVER.name },
  })),
  row('PATCH /v3/findings/:findingId', MANAGERS, 'absent', ({ findingId }) => ({
    path: `/v3/findings/${findingId}`,
    body: { status: 'resolved', assignee: null },
  })),
  row('POST /v3/findings/:findingId/comments', MANAGERS, 'absent', ({ findingId }) => ({
    path: `/v3/findings/${findingId}/comments`,
    body: { text: INTRUDER },
  })),
  row('POST /v3/findings/:findingId/merge', MANAGERS, 'absent', ({ findingId }) => ({
    path: `/v3/findings/${findingId}/merge`,
    body: { findingIds: [`fnd_${'b'.repeat(26)}`] },
  })),
  row('POST /v3/findings/:findingId/split', MANAGERS, 'absent', ({ findingId }) => ({
    path: `/v3/findings/${findingId}/split`,
    body: { findingId: `fnd_${'b'.repeat(26)}` },
  })),
  read(
    'GET /v3/findings/:findingId/activity',
    'absent',
    ({ findingId }, query) => `/v3/findings/${findingId}/activity?${query}`,
  ),
  read(
    'GET /v3/findings/:findingId/traces',
    'absent',
    ({ findingId }, query) => `/v3/findings/${findingId}/traces?${query}`,
  ),
  read(
    'GET /v3/findings/:findingId/occurrences',
    'absent',
    ({ findingId }, query) => `/v3/findings/${findingId}/occurrences?${query}`,
  ),
  read('GET /v3/findings/:findingId/values', 'absent', ({ findingId }) => `/v3/findings/${findingId}/values`),
  read(
    'GET /v3/findings/:findingId/traces/:traceId',
    'absent',
    ({ findingId, traceId }) => `/v3/findings/${findingId}/traces/${traceId}`,
  ),
  read('GET /v3/traces', 'own', (_, query) => `/v3/traces?${query}`),
  read('GET /v3/traces', 'own', () => '/v3/traces?hasFinding=true&attribute=http.route%3D/cart'),
  read('GET /v3/services', 'own', () => `/v3/services?${AROUND_NOW}`),
  read('GET /v3/service-map', 'own', () => `/v3/service-map?${AROUND_NOW}`),
  read('GET /v3/versions', 'own', () => `/v3/versions?${AROUND_NOW}`),
  read('GET /v3/suggestions', 'own', () => `/v3/suggestions?of=value&key=http.route&${AROUND_NOW}`),
  read('GET /v3/services/:name', 'own', () => `/v3/services/${SERVICE}?${AROUND_NOW}`),
  read('GET /v3/traces/:traceId', 'absent', ({ traceId }) => `/v3/traces/${traceId}`),
  read('GET /v3/traces/:traceId/completeness', 'absent', ({ traceId }) => `/v3/traces/${traceId}/completeness`),
  row('POST /v3/traces/:traceId/spans', READERS, 'absent', ({ traceId, spanId }) => ({
    path: `/v3/traces/${traceId}/spans`,
    body: { spanIds: [spanId] },
  })),
  read('GET /tempo/api/traces/:traceId', 'absent', ({ traceId }) => `/tempo/api/traces/${traceId}`),
  read('GET /tempo/api/v2/traces/:traceId', 'absent', ({ traceId }) => `/tempo/api/v2/traces/${traceId}`),
  read('GET /tempo/api/search', 'own', () => '/tempo/api/search?q={}'),
  read('GET /tempo/api/search/tags', 'own', () => '/tempo/api/search/tags'),
  read('GET /tempo/api/v2/search/tags', 'own', () => '/tempo/api/v2/search/tags'),
  read('GET /tempo/api/search/tag/:tag/values', 'own', () => '/tempo/api/search/tag/name/values'),
  read('GET /tempo/api/v2/search/tag/:tag/values', 'own', () => '/tempo/api/v2/search/tag/.session.id/values'),
  read('GET /jaeger/api/traces/:traceId', 'absent', ({ traceId }) => `/jaeger/api/traces/${traceId}`),
  read('GET /jaeger/api/traces', 'own', ({ slug }) => `/jaeger/api/traces?service=${slug}`),
  read('GET /jaeger/api/services', 'own', () => '/jaeger/api/services'),
  read('GET /jaeger/api/services/:service/operations', 'own', ({ slug }) => `/jaeger/api/services/${slug}/operations`),
  read('GET /jaeger/api/dependencies', 'own', () => '/jaeger/api/dependencies'),
  read('GET /jaeger/api/operations', 'own', ({ slug }) => `/jaeger/api/operations?service=${slug}`),
  read('GET /tempo/api/echo', 'own', () => '/tempo/api/echo'),
  read('GET /tempo/api/status/buildinfo', 'own', () => '/tempo/api/status/buildinfo'),
  read('GET /v3/logs', 'own', (_, query) => `/v3/logs?${AROUND_NOW}&${query}`),
  read('GET /v3/logs', 'own', ({ traceId }) => `/v3/logs?trace=${traceId}`),
  read('GET /v3/logs', 'own', ({ sessionId }) => `/v3/logs?${AROUND_NOW}&session=${sessionId}`),
  read('GET /v3/logs/histogram', 'own', ({ traceId }) => `/v3/logs/histogram?${AROUND_NOW}&trace=${traceId}`),
  // By user: other rows write sessions with ids of the other workspace.
  read('GET /v3/sessions', 'own', ({ userIdentifier }, query) => `/v3/sessions?user=${userIdentifier}&${query}`),
  read('GET /v3/metrics', 'own', (_, query) => `/v3/metrics?${AROUND_NOW}&${query}`),
  read('GET /v3/metrics/:name/series', 'absent', ({ metricName }) => `/v3/metrics/${metricName}/series?${AROUND_NOW}`),
  read('GET /prometheus/api/v1/query', 'own', ({ metricName }) => `/prometheus/api/v1/query?${promql(metricName)}`),
  form('POST /prometheus/api/v1/query', ({ metricName }) => promql(metricName)),
  read(
    'GET /prometheus/api/v1/query_range',
    'own',
    ({ metricName }) => `/prometheus/api/v1/query_range?${promql(metricName)}&${PROMETHEUS_RANGE}&step=60`,
  ),
  form('POST /prometheus/api/v1/query_range', things => `${promql(things.metricName)}&${PROMETHEUS_RANGE}&step=60`),
  read(
    'GET /prometheus/api/v1/query_exemplars',
    'own',
    () => `/prometheus/api/v1/query_exemplars?query=traces_spanmetrics_latency_bucket&${PROMETHEUS_RANGE}`,
  ),
  form('POST /prometheus/api/v1/query_exemplars', () => `query=traces_spanmetrics_latency_bucket&${PROMETHEUS_RANGE}`),
  read('GET /prometheus/api/v1/labels', 'own', () => `/prometheus/api/v1/labels?${PROMETHEUS_RANGE}`),
  form('POST /prometheus/api/v1/labels', () => String(PROMETHEUS_RANGE)),
  read(
    'GET /prometheus/api/v1/label/:label/values',
    'own',
    () => `/prometheus/api/v1/label/__name__/values?${PROMETHEUS_RANGE}`,
  ),
  read(
    'GET /prometheus/api/v1/series',
    'own',
    ({ metricName }) => `/prometheus/api/v1/series?${PROMETHEUS_RANGE}&${promql(metricName, 'match[]')}`,
  ),
  form('POST /prometheus/api/v1/series', ({ metricName }) => `${PROMETHEUS_RANGE}&${promql(metricName, 'match[]')}`),
  read('GET /prometheus/api/v1/metadata', 'own', () => '/prometheus/api/v1/metadata'),
  read('GET /prometheus/api/v1/status/buildinfo', 'own', () => '/prometheus/api/v1/status/buildinfo'),
  read('GET /v3/sessions/:sessionId', 'absent', ({ sessionId }) => `/v3/sessions/${sessionId}`),
  read(
    'GET /v3/sessions/:sessionId/timeline',
    'absent',
    ({ sessionId }, query) => `/v3/sessions/${sessionId}/timeline?${query}`,
  ),
  read(
    'GET /v3/sessions/:sessionId/replay',
    'absent',
    ({ sessionId }, query) => `/v3/sessions/${sessionId}/replay?${query}`,
  ),
  read(
    'GET /v3/sessions/:sessionId/replay/events',
    'absent',
    ({ sessionId }) => `/v3/sessions/${sessionId}/replay/events`,
  ),

  row('GET /v3/receipts/:receiptId', [...TELEMETRY, ...BUILDS, ...READERS], 'absent', ({ receiptId }) => ({
    path: `/v3/receipts/${receiptId}`,
  })),

  read('GET /v3/watermarks', 'own', (_, query) => `/v3/watermarks?${query}`),

  row('GET /v3/dead-letters', READERS, 'own', (_, query) => ({ path: `/v3/dead-letters?${query}` })),
  row('GET /v3/dead-letters/:letterId', READERS, 'absent', ({ letterId }) => ({
    path: `/v3/dead-letters/${letterId}`,
  })),
  row('GET /v3/dead-letters/:letterId/body', READERS, 'absent', ({ letterId }) => ({
    path: `/v3/dead-letters/${letterId}/body`,
  })),
  row('POST /v3/dead-letters/replay', MANAGERS, 'own', ({ letterId }) => ({
    path: '/v3/dead-letters/replay',
    body: { ids: [letterId] },
  })),
  row('POST /v3/dead-letters/purge', MANAGERS, 'own', ({ letterId }) => ({
    path: '/v3/dead-letters/purge',
    body: { ids: [letterId] },
  })),

  row('GET /v3/surfaces', READERS, 'own', (_, query) => ({ path: `/v3/surfaces?${query}` })),
  row('POST /v3/surfaces', MANAGERS, 'own', () => ({ path: '/v3/surfaces', body: { name: INTRUDER } })),
  row('DELETE /v3/surfaces/:surfaceId', MANAGERS, 'absent', ({ surfaceId }) => ({ path: `/v3/surfaces/${surfaceId}` })),
  row('GET /v3/surfaces/:surfaceId/keys', READERS, 'absent', ({ surfaceId }, query) => ({
    path: `/v3/surfaces/${surfaceId}/keys?${query}`,
  })),
  row('POST /v3/surfaces/:surfaceId/keys', MANAGERS, 'absent', ({ surfaceId }) => ({
    path: `/v3/surfaces/${surfaceId}/keys`,
    body: { kind: 'secret', scopes: ['release:write'] },
  })),
  row('PATCH /v3/surfaces/:surfaceId/keys/:keyId', MANAGERS, 'absent', ({ surfaceId, surfaceKeyId }) => ({
    path: `/v3/surfaces/${surfaceId}/keys/${surfaceKeyId}`,
    body: { quotas: { requestsPerSecond: 1_000_000 } },
  })),
  row('DELETE /v3/surfaces/:surfaceId/keys/:keyId', MANAGERS, 'absent', ({ surfaceId, surfaceKeyId }) => ({
    path: `/v3/surfaces/${surfaceId}/keys/${surfaceKeyId}`,
  })),

  row('GET /v3/retention', READERS, 'own', () => ({ path: '/v3/retention' })),
  row('POST /v3/erasures', MANAGERS, 'own', ({ sessionId }) => ({ path: '/v3/erasures', body: { sessionId } })),
  row('GET /v3/erasures', MANAGERS, 'own', (_, query) => ({ path: `/v3/erasures?${query}` })),
  row('GET /v3/erasures/:erasureId', MANAGERS, 'absent', ({ erasureId }) => ({ path: `/v3/erasures/${erasureId}` })),
  row('PUT /v3/retention', MANAGERS, 'own', () => ({ path: '/v3/retention', body: { 'build-reports': 29 } })),

  read('GET /v3/pipeline', 'own', () => `/v3/pipeline?${AROUND_NOW}`),
  read('GET /v3/changes', 'own', (_, query) => `/v3/changes?${query}`),
  read('GET /v3/usage', 'own', (_, query) => `/v3/usage?${query}`),
  read('GET /v3/usage/keys', 'own', (_, query) => `/v3/usage/keys?${query}`),
  read('GET /v3/members', 'own', (_, query) => `/v3/members?${query}`),
  row('POST /v3/members', USERS, 'own', () => ({ path: '/v3/members', body: { userId: INTRUDER, permissions: [] } })),
  row('PATCH /v3/members/:userId', USERS, 'absent', ({ memberId }) => ({
    path: `/v3/members/${memberId}`,
    body: { permissions: ['org:findings:read'] },
  })),
  row('DELETE /v3/members/:userId', USERS, 'absent', ({ memberId }) => ({ path: `/v3/members/${memberId}` })),
  row('GET /v3/workspaces/:workspaceSlug/api-keys', USERS, 'absent', ({ slug }, query) => ({
    path: `/v3/workspaces/${slug}/api-keys?${query}`,
  })),
  row('POST /v3/workspaces/:workspaceSlug/api-keys', USERS, 'absent', ({ slug }) => ({
    path: `/v3/workspaces/${slug}/api-keys`,
    body: {
      ...{
        idempotencyKey: IDEMPOTENCY_KEY,
        name: INTRUDER,
        scopes: ['org:surfaces:read'],
        secondsUntilExpiration: null,
      },
    },
  })),
  row('DELETE /v3/workspaces/:workspaceSlug/api-keys/:apiKeyId', USERS, 'absent', ({ slug, apiKeyId }) => ({
    path: `/v3/workspaces/${slug}/api-keys/${apiKeyId}`,
  })),
]

function row(
  operation: string,
  takes: readonly CredentialKind[],
  foreign: MatrixRow['foreign'],
  request: MatrixRow['request'],
): MatrixRow {
  return { operation, takes, foreign, request }
}

function read(
  operation: string,
  foreign: MatrixRow['foreign'],
  path: (things: Things, query: string) => string,
): MatrixRow {
  return row(operation, READERS, foreign, (things, query) => ({ path: path(things, query) }))
}

function form(operation: string, body: (things: Things) => string): MatrixRow {
  return row(operation, READERS, 'own', things => ({
    path: operation.split(' ')[1] ?? '',
    body: body(things),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  }))
}

/** A call of a tool of agents. */
function tool(name: string, argumentsOf: (things: Things) => Readonly<Record<string, unknown>>): MatrixRow {
  return row('POST /mcp', READERS, 'own', things => ({
    path: '/mcp',
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: argumentsOf(things) } },
  }))
}

/** An export of one span in this trace and session, with an exception. */
function failedSpan({ traceId, sessionId }: Things): unknown {
  const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })
  const attributes = [text('exception.type', INTRUDER), text('exception.message', INTRUDER)]
  const span = {
    traceId,
    spanId: '00000000000000ee',
    name: INTRUDER,
    startTimeUnixNano: '1790000000000000000',
    endTimeUnixNano: '1790000000000000001',
    attributes: [text('session.id', sessionId)],
    events: [{ name: 'exception', timeUnixNano: '1790000000000000000', attributes }],
  }
  return { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }
}
