import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_TIMES } from '../example-values.ts'

const { traceId, sessionId, serviceName } = EXAMPLE

const span = {
  spanId: EXAMPLE.spanId,
  name: 'GET /cart',
  kind: 'SERVER',
  serviceName,
  startTimeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
  endTimeUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
  durationMs: 42,
  statusCode: 'ERROR',
  statusMessage: EXAMPLE_EXCEPTION.message,
  sessionId,
  httpRoute: '/cart',
  occurrenceCount: 1,
  timestamp: EXAMPLE_TIMES.startedAt,
} as const
const totals = {
  rootCount: 1,
  danglingParentCount: 0,
  startedAtUnixNano: `${EXAMPLE.recordedAtMs}000000`,
  endedAtUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
  wallDurationMs: 42,
  truncated: false,
} as const

const completeness = { state: 'complete', settledBefore: EXAMPLE_TIMES.receivedAt, reasons: [] } as const

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  readFindingTrace: {
    traceId,
    spans: [span],
    ...totals,
  },
  listTraces: {
    traces: [
      {
        traceId,
        firstSpan: { spanId: EXAMPLE.spanId, name: 'GET /cart', serviceName },
        startedAtUnixNano: totals.startedAtUnixNano,
        endedAtUnixNano: totals.endedAtUnixNano,
        wallDurationMs: 42,
        spanCount: 1,
        errorCount: 1,
        services: [serviceName],
        serviceCount: 1,
      },
    ],
    nextCursor: null,
  },
  readTrace: {
    traceId,
    spanCount: 1,
    ...totals,
    names: ['GET /cart'],
    services: [serviceName],
    repeated: { spans: [], counts: [] },
    completeness,
    missingParents: [],
    spans: {
      ids: EXAMPLE.spanId,
      startDeltaNanos: [0],
      durationNanos: [42_000_000],
      parents: [-1],
      names: [0],
      services: [0],
      kinds: [2],
      statuses: [2],
      flags: [0],
    },
  },
  readTraceCompleteness: {
    traceId,
    ...completeness,
    spanCount: 1,
    rootCount: 1,
    danglingParentCount: 0,
    missingParents: [],
  },
  readSpans: {
    traceId,
    spans: [
      {
        ...span,
        surfaceId: EXAMPLE.surfaceId,
        receivedAt: EXAMPLE_TIMES.receivedAt,
        traceState: '',
        flags: 0,
        attributes: [{ key: 'http.route', type: 'string', value: '/cart' }],
        droppedAttributesCount: 0,
        events: [
          {
            timeUnixNano: `${EXAMPLE.recordedAtMs + 41}000000`,
            name: 'exception',
            attributes: [
              { key: 'exception.type', type: 'string', value: EXAMPLE_EXCEPTION.type },
              { key: 'exception.message', type: 'string', value: EXAMPLE_EXCEPTION.message },
            ],
            droppedAttributesCount: 0,
          },
        ],
        droppedEventsCount: 0,
        links: [],
        droppedLinksCount: 0,
        findingIds: [EXAMPLE.findingId],
        resource: { attributes: { 'service.name': serviceName }, droppedAttributesCount: 0, schemaUrl: '' },
        scope: { name: '', version: '', attributes: {}, droppedAttributesCount: 0, schemaUrl: '' },
      },
    ],
    rest: [],
    tooLarge: [],
    absent: [],
  },
} as const
