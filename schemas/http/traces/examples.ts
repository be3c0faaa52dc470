import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_TIMES } from '../example-values.ts'

const { traceId, sessionId, serviceName } = EXAMPLE

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  readFindingTrace: {
    traceId,
    spans: [
      {
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
      },
    ],
    rootCount: 1,
    danglingParentCount: 0,
    startedAtUnixNano: `${EXAMPLE.recordedAtMs}000000`,
    endedAtUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
    wallDurationMs: 42,
    truncated: false,
  },
} as const
