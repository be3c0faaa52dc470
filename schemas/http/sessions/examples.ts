import { EXAMPLE, EXAMPLE_REPLAY_COUNTERS, EXAMPLE_TIMES } from '../example-values.ts'

const { findingId, traceId, sessionId, deviceId } = EXAMPLE

const identity = {
  identifier: 'user-7',
  source: { type: 'custom', name: 'Our sign-in' },
  email: 'ada@example.com',
  traits: { plan: 'team' },
  attachedAt: EXAMPLE_TIMES.receivedAt,
}

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
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
} as const
