import { EXAMPLE, EXAMPLE_REPLAY_COUNTERS, EXAMPLE_TIMES } from '../example-values.ts'

const { surfaceId, sessionId, workspaceId } = EXAMPLE

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  readReplay: {
    chunks: [
      {
        id: 'chk_a60180507058f43a0ba8b452be3e5eb1',
        objectKey: `replays/${workspaceId}/${surfaceId}/${sessionId}/${EXAMPLE.windowId}/0.jsonl.gz`,
        windowId: EXAMPLE.windowId,
        segmentId: '0',
        firstTs: EXAMPLE.recordedAtMs,
        lastTs: EXAMPLE.recordedAtMs + 20,
        firstEventAt: EXAMPLE_TIMES.firstEventAt,
        lastEventAt: EXAMPLE_TIMES.lastEventAt,
        hasFullSnapshot: true,
        activityCount: 0,
        ...EXAMPLE_REPLAY_COUNTERS,
        receivedAt: EXAMPLE_TIMES.receivedAt,
      },
    ],
    nextCursor: null,
    gaps: [],
    missingFullSnapshots: [],
    truncated: false,
  },
} as const

/** Recorded events as JSON lines: the address of a page, and a full snapshot. */
export const EXAMPLE_EVENTS = [
  { type: 4, data: { href: 'https://shop.example/cart', width: 1280, height: 720 }, timestamp: EXAMPLE.recordedAtMs },
  { type: 2, data: { node: { type: 0, childNodes: [], id: 1 } }, timestamp: EXAMPLE.recordedAtMs + 20 },
]
  .map(event => `${JSON.stringify(event)}\n`)
  .join('')

/** Metadata of the upload of EXAMPLE_EVENTS. */
export const EXAMPLE_REPLAY_METADATA = {
  windowId: EXAMPLE.windowId,
  segmentId: 0,
  firstTs: EXAMPLE.recordedAtMs,
  lastTs: EXAMPLE.recordedAtMs + 20,
  eventCount: 2,
  hasFullSnapshot: true,
} as const
