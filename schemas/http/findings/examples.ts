import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_TIMES } from '../example-values.ts'

const { findingId, surfaceId, traceId, sessionId, serviceName, version } = EXAMPLE

const finding = {
  id: findingId,
  surfaceId,
  serviceName,
  type: EXAMPLE_EXCEPTION.type,
  message: EXAMPLE_EXCEPTION.message,
  firstSeenAt: EXAMPLE_TIMES.thrownAt,
  lastSeenAt: EXAMPLE_TIMES.thrownAt,
  occurrenceCount: 1,
  status: 'open',
}

const by = { userId: EXAMPLE.userId, apiKeyId: null }

const comment = {
  id: 'act_2d7c90b1e6f34a58c013',
  createdAt: EXAMPLE_TIMES.completedAt,
  by,
  action: 'commented',
  text: 'The cart is emptied twice.',
}

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  listFindings: {
    findings: [finding],
    nextCursor: null,
    occurrences: {
      from: '2026-09-21T12:00:00.000Z',
      to: '2026-09-21T15:00:00.000Z',
      bucketSeconds: 3_600,
      counts: [[0, 0, 1]],
    },
  },
  readFinding: {
    finding: {
      ...finding,
      frames: [
        {
          function: 'checkout',
          file: 'cart.ts',
          line: 1,
          column: 1,
          resolved: true,
          generated: { function: 'checkout', file: 'https://shop.example/assets/app.js', line: 1, column: 1 },
        },
      ],
      occurrences: {
        from: '2026-09-21T12:00:00.000Z',
        to: '2026-09-21T15:00:00.000Z',
        bucketSeconds: 3_600,
        counts: [0, 0, 1],
      },
      lastOccurrences: [
        {
          occurredAt: EXAMPLE_TIMES.thrownAt,
          receivedAt: EXAMPLE_TIMES.receivedAt,
          traceId,
          spanId: EXAMPLE.spanId,
          sessionId,
          serviceVersion: version,
          message: EXAMPLE_EXCEPTION.message,
        },
      ],
      seenIn: {
        surfaceIds: [surfaceId],
        serviceNames: [serviceName],
        serviceVersions: [version],
        approximateTraceCount: 1,
        approximateSessionCount: 1,
      },
    },
  },
  changeFinding: {
    finding: { ...finding, status: 'resolved', statusChangedAt: EXAMPLE_TIMES.createdAt, assignee: EXAMPLE.userId },
  },
  commentFinding: { entry: comment },
  listFindingActivity: {
    activity: [comment, { id: 'act_9a3b5c7d0e1f21324354', createdAt: EXAMPLE_TIMES.createdAt, by, action: 'resolved' }],
    nextCursor: null,
  },
  listFindingTraces: {
    traces: [{ id: traceId, traceId, occurrenceCount: 1, lastSeenAt: EXAMPLE_TIMES.thrownAt }],
    nextCursor: null,
  },
} as const
