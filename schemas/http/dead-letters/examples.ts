import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'

const LETTER = {
  id: EXAMPLE.deadLetterId,
  state: 'dead',
  queue: 'spans',
  surfaceId: EXAMPLE.surfaceId,
  reason: 'refused_by_clickhouse',
  receivedAt: EXAMPLE_TIMES.receivedAt,
  settledAt: '2026-09-21T14:13:21.577Z',
  bodyBytes: 512,
  replays: 0,
} as const

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  listDeadLetters: { deadLetters: [LETTER], nextCursor: null },
  readDeadLetter: {
    deadLetter: {
      ...LETTER,
      contentType: 'application/x-protobuf',
      contentEncoding: 'identity',
      isReplayable: true,
      storedTables: [],
      storedRecords: 0,
      rejected: [],
      attempts: [{ outcome: 'dead', settledAt: LETTER.settledAt, reason: LETTER.reason }],
    },
  },
  replayDeadLetters: { replayed: 1, skipped: [], nextCursor: null },
  purgeDeadLetters: { purged: 1, skipped: [], nextCursor: null },
} as const
