import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_REPLAY_COUNTERS, EXAMPLE_TIMES } from '../example-values.ts'

const { findingId, traceId, spanId, sessionId, deviceId, surfaceId, serviceName } = EXAMPLE

const identity = {
  identifier: 'user-7',
  source: { type: 'custom', name: 'Our sign-in' },
  email: 'ada@example.com',
  traits: { plan: 'team' },
  attachedAt: EXAMPLE_TIMES.receivedAt,
}

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  listSessions: {
    sessions: [
      {
        id: sessionId,
        surfaceIds: [surfaceId],
        firstSeenAt: EXAMPLE_TIMES.receivedAt,
        lastSeenAt: EXAMPLE_TIMES.receivedAt,
        identity: { identifier: identity.identifier, email: identity.email },
        traceCount: 1,
        errorCount: 1,
        findingCount: 1,
        replayChunkCount: 1,
      },
    ],
    nextCursor: null,
  },
  readSession: {
    session: {
      id: sessionId,
      identity,
      identities: [identity],
      identityCount: 1,
      devices: [
        {
          deviceId,
          firstHeartbeatAt: EXAMPLE_TIMES.receivedAt,
          lastHeartbeatAt: EXAMPLE_TIMES.receivedAt,
          heartbeatCount: 1,
        },
      ],
      deviceCount: 1,
      firstSeenAt: EXAMPLE_TIMES.receivedAt,
      lastSeenAt: EXAMPLE_TIMES.receivedAt,
      traces: [
        {
          id: traceId,
          traceId,
          startedAt: EXAMPLE_TIMES.startedAt,
          endedAt: EXAMPLE_TIMES.endedAt,
          spanCount: 1,
          errorCount: 1,
        },
      ],
      traceCount: 1,
      findings: [{ id: findingId, occurrenceCount: 1, lastSeenAt: EXAMPLE_TIMES.thrownAt }],
      findingCount: 1,
      replay: {
        chunkCount: 1,
        windowCount: 1,
        ...EXAMPLE_REPLAY_COUNTERS,
        firstEventAt: EXAMPLE_TIMES.firstEventAt,
        lastEventAt: EXAMPLE_TIMES.lastEventAt,
      },
      truncated: false,
    },
  },
  readTimeline: {
    entries: [
      {
        kind: 'span',
        at: EXAMPLE_TIMES.startedAt,
        receivedCount: 1,
        surfaceId,
        ...{ traceId, spanId },
        name: 'GET /cart',
        serviceName,
        durationMs: 42,
        status: 'ERROR',
      },
      {
        kind: 'finding',
        at: EXAMPLE_TIMES.thrownAt,
        receivedCount: 1,
        surfaceId,
        ...{ traceId, spanId, findingId, serviceName },
        type: EXAMPLE_EXCEPTION.type,
        message: EXAMPLE_EXCEPTION.message,
      },
    ],
    nextCursor: null,
  },
} as const
