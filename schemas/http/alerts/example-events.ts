import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_TIMES } from '../example-values.ts'
import type { AlertEvent, AlertEventType, Changed, FindingEvent, Measured, MeasuredEvent } from './events.ts'

const CONSOLE = 'https://penstock.example/console'

const common = {
  id: 'evt_4g6peb7eom2yodowmzpd5xfhbe',
  workspaceId: EXAMPLE.workspaceId,
  surface: { id: EXAMPLE.surfaceId, name: 'web shop' },
  resolved: false,
}
const timestamp = EXAMPLE_TIMES.receivedAt
const by = { userId: EXAMPLE.userId, name: 'Ada' }

function findingEvent(
  type: FindingEvent['type'],
  more: { readonly measured?: Measured; readonly changed?: Changed } = {},
): FindingEvent {
  return {
    type,
    timestamp,
    data: {
      ...common,
      finding: {
        id: EXAMPLE.findingId,
        type: EXAMPLE_EXCEPTION.type,
        message: EXAMPLE_EXCEPTION.message,
        service: EXAMPLE.serviceName,
        environment: 'production',
        release: EXAMPLE.version,
        occurrences: 3,
        sessions: 2,
        people: 1,
        firstSeenAt: EXAMPLE_TIMES.thrownAt,
        lastSeenAt: EXAMPLE_TIMES.thrownAt,
      },
      ...more,
      frame: { function: 'checkout', file: 'cart.ts', line: 1, sourceLine: 'throw new EmptyCartError(cart)' },
      chain: [{ type: 'TypeError', message: 'items is undefined' }],
      trace: EXAMPLE.traceId,
      recording: { sessionId: EXAMPLE.sessionId, at: EXAMPLE_TIMES.thrownAt },
      links: {
        finding: `${CONSOLE}/findings/${EXAMPLE.findingId}`,
        act: `${CONSOLE}/act?token=1.ws_1.fnd_1.rcv_1.tfxq8w.signature`,
        trace: `${CONSOLE}/traces/${EXAMPLE.traceId}`,
        recording: `${CONSOLE}/sessions/${EXAMPLE.sessionId}`,
      },
    },
  }
}

function measuredEvent(type: MeasuredEvent['type'], page: string, measured: Measured, service?: string): MeasuredEvent {
  const chart = `${CONSOLE}/${page}`
  return { type, timestamp, data: { ...common, ...(service && { service }), measured, links: { chart } } }
}

/** An event of each type, by its type. */
export const EXAMPLE_EVENTS: Readonly<Record<AlertEventType, AlertEvent>> = {
  'finding.created': findingEvent('finding.created'),
  'finding.regressed': findingEvent('finding.regressed'),
  'finding.unignored': findingEvent('finding.unignored'),
  'finding.spiking': findingEvent('finding.spiking', {
    measured: { what: 'occurrences', value: 120, threshold: 50, unit: '', minutes: 5 },
  }),
  'finding.spreading': findingEvent('finding.spreading', {
    measured: { what: 'people', value: 25, threshold: 10, unit: '', minutes: 60 },
  }),
  'finding.changed': findingEvent('finding.changed', {
    changed: { by, action: 'assigned', assignee: { userId: EXAMPLE.memberId, name: 'Grace' } },
  }),
  'finding.commented': findingEvent('finding.commented', {
    changed: { by, action: 'commented', text: 'The cart is emptied twice.' },
  }),
  'metric.threshold': measuredEvent('metric.threshold', 'metrics', {
    what: 'p95 of http.server.request.duration',
    value: 1.25,
    threshold: 1,
    unit: 's',
    minutes: 10,
    expression: 'histogram_quantile(0.95, rate(http_server_request_duration_bucket[10m]))',
  }),
  'service.errors': measuredEvent(
    'service.errors',
    'services/shop',
    { what: 'share of failed calls', value: 12.5, threshold: 5, unit: '%', minutes: 5 },
    EXAMPLE.serviceName,
  ),
  'service.latency': measuredEvent(
    'service.latency',
    'services/shop',
    { what: 'p95 of the duration', value: 850, threshold: 500, unit: 'ms', minutes: 5 },
    EXAMPLE.serviceName,
  ),
  'surface.silent': measuredEvent('surface.silent', 'pipeline', {
    ...{ what: 'requests received', value: 0, threshold: 1, unit: '', minutes: 30 },
  }),
  'pipeline.dead_letters': measuredEvent('pipeline.dead_letters', 'pipeline', {
    ...{ what: 'dead letters', value: 40, threshold: 1, unit: '', minutes: 15 },
  }),
  'pipeline.quota': measuredEvent('pipeline.quota', 'pipeline', {
    ...{ what: 'requests over a quota', value: 92, threshold: 1, unit: '', minutes: 60 },
  }),
  'pipeline.late': measuredEvent('pipeline.late', 'pipeline', {
    ...{ what: 'age of the oldest request that is not stored', value: 340, threshold: 300, unit: 's', minutes: 5 },
  }),
  test: { type: 'test', timestamp, data: common },
}
