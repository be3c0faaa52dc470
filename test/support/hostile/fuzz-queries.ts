import { TOOLS } from '../../../api/mcp/tools/table.ts'
import { EXAMPLE, EXAMPLE_TIMES } from '../../../schemas/http/example-values.ts'
import type { Random } from '../payloads/scramble-message.ts'
import { pick } from './fuzz-run.ts'

/** A request as it is sent. */
export interface FuzzRequest {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer> | string | undefined
}

/** Address and token of the reads. */
interface Reader {
  readonly apiUrl: string
  readonly sessionToken: string
  /** Values that the service has stored, by the values of the examples that they replace. */
  readonly stored: Readonly<Record<string, string>>
}

/** Texts that parsers, queries and formats treat in special ways. */
const TEXTS = [
  ...[
    '',
    ' ',
    '0',
    '-1',
    '1',
    '9'.repeat(30),
    'NaN',
    'true',
    'null',
    '%00',
    '\u0000',
    '\u202e\u{e0041}',
    '\ud800',
    'é😀',
  ],
  ...["'", '"', '\\', '`', '{}', '[]', '=', 'a=b', '=~', "' OR 1=1 --", '{{x}}', '../..', 'x'.repeat(1_000)],
  ...['__proto__', 'constructor', 'toString', 'http.route', 'http.route=/cart', 'service.name', 'ERROR', 'span,log'],
  ...['1970-01-01T00:00:00Z', '2026-11-21T10:00:00+02:00', '9999-12-31T23:59:59Z', '0000-01-01T00:00:00Z', 'now', '5m'],
  ...['1790000000', '1790000000.5', '-1e9', '1e308', '18446744073709551616', '100ms', '1h1m1s', 'f'.repeat(32)],
] as const
const JSON_VALUES = [...TEXTS, null, true, -1, 0, 1.5, 25, 1e21, [], {}, ['x'], [EXAMPLE.spanId], { a: { b: [] } }]

/** Makes a call of a tool of agents, with arguments of its own and others. */
export function toolCall({ apiUrl, sessionToken, stored }: Reader, random: Random): FuzzRequest {
  const { name, listed } = pick(TOOLS, random)
  const known = Object.keys(listed.inputSchema.properties as object)
  const ids = [...Object.values(stored), EXAMPLE.sessionId, EXAMPLE.traceId, EXAMPLE.spanId]
  const args: Record<string, unknown> = {}
  for (const argument of known) {
    if (random() < 0.3) args[argument] = random() < 0.5 ? pick(ids, random) : pick(JSON_VALUES, random)
    if (/^(traceId|findingId)$/.test(argument) && random() < 0.9) {
      args[argument] = stored[argument === 'traceId' ? EXAMPLE.traceId : EXAMPLE.findingId]
    }
    if (argument === 'sessionId' && random() < 0.9) args[argument] = EXAMPLE.sessionId
    if (argument === 'spanIds' && random() < 0.9) args[argument] = [EXAMPLE.spanId, pick(TEXTS, random)]
  }
  if (random() < 0.02) args[pick(TEXTS, random)] = pick(JSON_VALUES, random)
  const method =
    random() < 0.9 ? 'tools/call' : pick(['tools/list', 'initialize', 'ping', 'prompts/get', ...TEXTS], random)
  const params = { name: random() < 0.98 ? name : pick(JSON_VALUES, random), arguments: args }
  return {
    ...{ url: `${apiUrl}/mcp`, method: 'POST' },
    headers: { authorization: `Bearer ${sessionToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  }
}

/** Makes a query in one of the interfaces of other tools. */
export function foreignQuery(
  { apiUrl, sessionToken, stored }: Reader,
  random: Random,
): { path: string; request: FuzzRequest } {
  const path = pick(PATHS, random)
  const parameters = new URLSearchParams()
  for (const name of PARAMETERS[path] ?? []) {
    if (random() < 0.7) parameters.append(name, parameterOf(name, random))
    if (random() < 0.02) parameters.append(name, pick(TEXTS, random))
  }
  const filled = path
    .replace(
      ':traceId',
      random() < 0.7 ? (stored[EXAMPLE.traceId] ?? '') : encodeURIComponent(pick(TEXTS, random).toWellFormed()),
    )
    .replace(
      ':name',
      encodeURIComponent(pick([...TEXTS, '__name__', 'http.route', '.http.route'], random).toWellFormed()),
    )
    .replace(':metric', encodeURIComponent(EXAMPLE.metricName))
    .replace(':session', encodeURIComponent(EXAMPLE.sessionId))
  const isForm = path.startsWith('/prometheus/api/v1/query') && random() < 0.3
  const headers = { authorization: `Bearer ${sessionToken}` }
  const accept = random() < 0.2 ? { accept: 'application/protobuf' } : {}
  const request: FuzzRequest = isForm
    ? {
        ...{ url: apiUrl + filled, method: 'POST', body: String(parameters) },
        headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
      }
    : { url: `${apiUrl}${filled}?${parameters}`, method: 'GET', headers: { ...headers, ...accept } }
  return { path, request }
}

const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  '/prometheus/api/v1/query': ['query', 'time'],
  '/prometheus/api/v1/query_range': ['query', 'start', 'end', 'step'],
  '/prometheus/api/v1/query_exemplars': ['query', 'start', 'end'],
  '/prometheus/api/v1/series': ['match[]', 'start', 'end'],
  '/prometheus/api/v1/labels': ['match[]', 'start', 'end'],
  '/prometheus/api/v1/label/:name/values': ['match[]', 'start', 'end'],
  '/tempo/api/search': ['q', 'tags', 'start', 'end', 'limit', 'minDuration'],
  '/tempo/api/v2/search/tag/:name/values': ['start', 'end'],
  '/tempo/api/traces/:traceId': ['start', 'end'],
  '/tempo/api/v2/traces/:traceId': ['start', 'end'],
  '/jaeger/api/traces': ['service', 'operation', 'tags', 'minDuration', 'start', 'end', 'limit'],
  '/jaeger/api/dependencies': ['endTs', 'lookback'],
  '/jaeger/api/traces/:traceId': [],
  '/jaeger/api/services/:name/operations': [],
  '/v3/findings': ['status', 'q', 'service', 'from', 'to', 'limit', 'occurrences'],
  '/v3/alerts/deliveries': ['receiver', 'limit'],
  '/v3/service-map': ['service', 'surface', 'environment', 'from', 'to'],
  '/v3/versions': ['service', 'surface', 'environment', 'from', 'to'],
  '/v3/suggestions': ['of', 'key', 'contains', 'service', 'from', 'to', 'limit'],
  '/v3/traces': [
    ...['service', 'name', 'status', 'minDurationMs', 'attribute', 'where', 'session', 'hasFinding'],
    ...['from', 'to', 'limit', 'cursor'],
  ],
  '/v3/logs': [
    ...['trace', 'span', 'session', 'service', 'severity', 'q', 'attribute', 'where'],
    ...['from', 'to', 'receivedFrom', 'limit', 'cursor'],
  ],
  '/v3/logs/histogram': ['trace', 'service', 'severity', 'q', 'attribute', 'from', 'to', 'step'],
  '/v3/metrics': ['prefix', 'service', 'from', 'to', 'limit', 'cursor'],
  '/v3/metrics/:metric/series': [
    ...['service', 'type', 'unit', 'filter', 'groupBy', 'step', 'aggregation', 'quantile'],
    ...['from', 'to'],
  ],
  '/v3/sessions/:session/timeline': ['kinds', 'from', 'to', 'limit', 'cursor'],
}
const PATHS = Object.keys(PARAMETERS)

function parameterOf(name: string, random: Random): string {
  if (random() < 0.15) return pick(TEXTS, random)
  switch (name) {
    case 'query':
      return expression(random, pick([0, 1, 1, 2, 3], random))
    case 'match[]':
      return selector(random)
    case 'q':
      return `{ ${Array.from({ length: Math.ceil(random() * 3) }, () => condition(random)).join(' && ')} }`
    case 'tags':
      return pick(['{"http.route":"/cart"}', '{"error":"true"}', 'service.name=shop http.route="/cart"'], random)
    case 'start':
      return String(EXAMPLE.recordedAtMs / 1_000 - Math.floor(random() * 100_000))
    case 'end':
    case 'time':
      return String(EXAMPLE.recordedAtMs / 1_000 + Math.floor(random() * 1_000))
    case 'step':
      return pick(['1', '15', '60s', '1h', '0.001'], random)
    case 'limit':
      return pick(['1', '20', '50', '1000'], random)
    case 'minDuration':
      return pick(['1ns', '100ms', '1h'], random)
    case 'service':
      return EXAMPLE.serviceName
    case 'status':
      return pick(['open', 'resolved', 'ignored', 'regressed', 'unresolved'], random)
    case 'occurrences':
    case 'hasFinding':
      return 'true'
    case 'from':
      return pick([EXAMPLE.from, EXAMPLE_TIMES.startedAt], random)
    case 'to':
      return pick([EXAMPLE.to, EXAMPLE_TIMES.endedAt], random)
    case 'session':
      return EXAMPLE.sessionId
    case 'attribute':
      return pick(['http.route=/cart', 'a=', '=b', 'a=b=c'], random)
    case 'where':
      return pick(
        ['[["a","exists"]]', '[["a",">","1e3"],["b","contains","ß"]]', '[["a","!=",""]]', '[[]]', '[["a","<","x"]]'],
        random,
      )
    case 'severity':
      return pick(['INFO', 'ERROR', 'NONE'], random)
    case 'kinds':
      return pick(['span', 'span,log,finding,heartbeat,replay', 'log,log', 'x'], random)
    case 'filter':
      return pick(['{"http.route":"/cart"}', '{"a":""}', '[]', '{"a":1}'], random)
    case 'groupBy':
      return pick(['["http.route"]', '[]', '["a","a"]', '{}'], random)
    case 'aggregation':
      return pick(['rate', 'sum', 'average', 'quantile', 'last'], random)
    default:
      return pick(TEXTS, random)
  }
}

function condition(random: Random): string {
  const field = pick(
    ['name', 'status', 'duration', '.http.route', 'span."http.route"', 'resource.service.name', 'kind'],
    random,
  )
  return `${field} ${pick(['=', '!=', '>', '>=', '=~'], random)} ${pick(['"x"', 'error', '1s', '`a`', '5', '"\\""'], random)}`
}

function selector(random: Random): string {
  const name = pick(
    [EXAMPLE.metricName, `${EXAMPLE.metricName}_bucket`, `${EXAMPLE.metricName}_count`, 'other'],
    random,
  )
  const matcher = pick(['', ', "http.route"="/cart"', ', "http.route"=~".*"', ', le!~"(a|b)+$"', ', x=~"("'], random)
  return `{"${name}"${matcher}}`
}

/** Returns an expression of PromQL, valid or nearly. */
function expression(random: Random, depth: number): string {
  if (depth === 0)
    return pick([selector(random), '1', '-1.5e3', 'NaN', 'Inf', '"text"', 'time()', `${selector(random)}[5m]`], random)
  const inner = () => expression(random, depth - 1)
  const range = `${selector(random)}[${pick(['1ms', '5m', '1h30m', '1w', '31d', '0s'], random)}]`
  const of = pick(['rate', 'increase', 'delta', 'sum_over_time', 'last_over_time', 'irate', 'nothing'], random)
  return pick(
    [
      () => `${of}(${range}${random() < 0.3 ? ' offset 5m' : ''})`,
      () => `${pick(['sum', 'avg', 'count', 'topk', 'quantile'], random)} by ("http.route", le) (${inner()})`,
      () => `topk(${pick(['1', '-1', '1e20', 'NaN'], random)}, ${inner()})`,
      () => `histogram_quantile(${pick(['0.95', '2', '-1', 'NaN'], random)}, ${inner()})`,
      () =>
        `(${inner()}) ${pick(['+', '-', '*', '/', '%', '^', '==', '> bool', 'and', 'or', 'unless'], random)} (${inner()})`,
      () => `${inner()} ${pick(['+', '*'], random)} on (le) group_left () ${inner()}`,
      () =>
        `${pick(['abs', 'ceil', 'clamp_max', 'scalar', 'vector', 'absent', 'sort', 'exp', 'ln'], random)}(${inner()})`,
      () => `-${inner()}`,
      () => `${inner()}[5m:1m]`,
    ],
    random,
  )()
}
