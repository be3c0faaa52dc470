import { describe, expect, it } from 'vitest'
import type { Pipeline } from '../api/generated/client.ts'
import { verdictOf } from './verdict.ts'

const rate = (requests: number[]) => ({ kind: 'traces', requests, records: [], bytes: [], deadLettered: [] })
const pipeline = (changes: Partial<NonNullable<Pipeline['history']>> = {}, waiting: number | null = 0): Pipeline => ({
  ...{ readAt: '2026-12-01T10:00:00Z', isPartial: false, unavailable: null },
  queues: [{ queue: 'traces', workBytes: 0, oldestAgeSeconds: 0, requests: waiting }],
  history: {
    ...{ from: '2026-11-30T10:00:00Z', to: '2026-12-01T10:00:00Z', stepSeconds: 600 },
    ...{ rates: [rate([200, 172])], refused: [], letters: [], purgedLetters: 0 },
    ...changes,
  },
})
const letter = (dead: number, discarded = 0) => ({ reason: 'truncated', dead, replayed: 1, discarded })

describe('the verdict on the pipeline', () => {
  it.each<[string, Pipeline, string, string]>([
    ['all stored', pipeline(), 'good', 'Nothing lost in the last 24 hours: 372 requests accepted, 372 stored.'],
    [
      'some kept, waiting and refused',
      pipeline({ letters: [letter(3)], refused: [{ kind: 'traces', status: 400, requests: 4 }] }, 2),
      'doubt',
      'Nothing lost in the last 24 hours: 374 requests accepted, 369 stored, 3 kept as dead letters, 2 waiting, 4 more refused in the response.',
    ],
    [
      'some lost',
      pipeline({ letters: [letter(1, 1)] }, null),
      'bad',
      '1 request lost in the last 24 hours: 372 requests accepted, 370 stored, 1 kept as dead letters, 1 lost, what waits is not known.',
    ],
    [
      'no history',
      { ...pipeline(), history: null, unavailable: 'the store does not respond' },
      'doubt',
      'Whether everything is stored cannot be read at the moment: the store does not respond.',
    ],
  ])('%s', (_name, read, is, text) => {
    expect(verdictOf(read)).toEqual({ is, text })
  })
})
