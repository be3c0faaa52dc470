import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'

const { surfaceId } = EXAMPLE

/** Responses to the examples of the operations, by operation. */
export const ANSWERS = {
  readReceipt: {
    receipt: {
      id: EXAMPLE.receiptId,
      status: 'stored',
      kind: 'sessions',
      surfaceId,
      receivedAt: EXAMPLE_TIMES.receivedAt,
      storedAt: '2026-09-21T14:13:21.577Z',
    },
  },
} as const
