import { QUEUES, RECEIPT_KIND_OF_QUEUE } from '../../queues/names.ts'
import type { Pipeline } from './schemas.ts'

const readAt = '2026-09-21T14:13:22.004Z'
const IN_QUEUE_OF_SPANS = { workBytes: 41_204, oldestAgeSeconds: 0.302 }
const kinds: Readonly<Record<string, Pipeline['queues'][number]['kind']>> = RECEIPT_KIND_OF_QUEUE

/** Responses to the examples of the operations, by operation. */
export const ANSWERS: { readonly readPipeline: Pipeline } = {
  readPipeline: {
    readAt,
    isPartial: false,
    queues: QUEUES.map(queue => {
      const kind = kinds[queue]
      const isBusy = queue === 'spans'
      return {
        queue,
        ...(isBusy ? IN_QUEUE_OF_SPANS : { workBytes: 0, oldestAgeSeconds: 0 }),
        ...(kind && { kind, requests: isBusy ? 3 : 0, settledBefore: isBusy ? '2026-09-21T14:13:21.702Z' : readAt }),
      }
    }),
    history: {
      from: '2026-09-21T14:10:00.000Z',
      to: '2026-09-21T14:14:00.000Z',
      stepSeconds: 60,
      rates: [
        {
          kind: 'traces',
          requests: [300, 304, 298, 302],
          records: [15_012, 15_020, 14_987, 15_112],
          bytes: [2_203_011, 2_210_004, 2_190_118, 2_208_911],
          deadLettered: [0, 0, 1, 0],
        },
      ],
      refused: [{ kind: 'traces', status: 429, requests: 12 }],
      letters: [{ reason: 'refused_by_clickhouse', dead: 1, replayed: 0, discarded: 0 }],
      purgedLetters: 0,
    },
    unavailable: null,
  },
}
