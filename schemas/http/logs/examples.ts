import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'

/** Time of the examples of a search. */
export const EXAMPLE_SEARCH = { from: '2026-09-21T14:00:00Z', to: '2026-09-21T14:20:00Z' } as const

const searched = { from: '2026-09-21T14:00:00.000Z', to: '2026-09-21T14:20:00.000Z' } as const
const STEPS = 4
const none = Array.from({ length: STEPS }, () => 0)

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  listLogs: {
    ...searched,
    logs: [
      {
        timestamp: EXAMPLE_TIMES.startedAt,
        timeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
        observedTimeUnixNano: '0',
        receivedAt: EXAMPLE_TIMES.receivedAt,
        surfaceId: EXAMPLE.surfaceId,
        serviceName: EXAMPLE.serviceName,
        serviceVersion: EXAMPLE.version,
        severity: 'WARN',
        severityNumber: 13,
        severityText: 'WARNING',
        body: 'the cart is empty',
        bodyType: 'string',
        traceId: EXAMPLE.traceId,
        spanId: EXAMPLE.spanId,
        sessionId: EXAMPLE.sessionId,
        flags: 0,
        attributes: [
          { key: 'http.route', type: 'string', value: '/cart' },
          { key: 'session.id', type: 'string', value: EXAMPLE.sessionId },
        ],
        droppedAttributesCount: 0,
        resource: {
          attributes: { 'service.name': EXAMPLE.serviceName },
          droppedAttributesCount: 0,
          schemaUrl: '',
        },
        scope: { name: '', version: '', attributes: {}, droppedAttributesCount: 0, schemaUrl: '' },
      },
    ],
    nextCursor: null,
  },
  readLogHistogram: {
    ...searched,
    startsAt: searched.from,
    stepSeconds: 300,
    total: 1,
    counts: {
      ...{ UNSPECIFIED: none, TRACE: none, DEBUG: none, INFO: none },
      WARN: [0, 0, 1, 0],
      ...{ ERROR: none, FATAL: none },
    },
  },
} as const
