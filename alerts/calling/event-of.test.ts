import fc from 'fast-check'
import { expect, it } from 'vitest'
import { alertEventSchema } from '../../schemas/http/alerts/events.ts'
import type { Occasion } from '../../schemas/records/alerts.ts'
import { eventOf } from './event-of.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 3_000 }),
  fc.string({ unit: 'grapheme', maxLength: 3_000 }),
)
const ms = fc.integer({ min: 0, max: 8e12 })

const described = fc.record({
  findingId: fc.constant(`fnd_${'a'.repeat(26)}`),
  ...{ type: text, message: text, service: text, release: text, environment: text, surfaceId: text },
  ...{ occurrences: fc.nat(), sessions: fc.nat(), people: fc.nat(), firstSeenMs: ms, lastSeenMs: ms, occurredMs: ms },
  frame: fc.option(fc.record({ function: text, file: text, line: fc.nat(), sourceLine: text }), { nil: undefined }),
  chain: fc.array(fc.record({ type: text, message: text }), { maxLength: 16 }),
  traceId: fc.constantFrom('', 'a'.repeat(32)),
  sessionId: text,
})

it('makes a valid event of whatever clients have sent and members have written', () => {
  fc.assert(
    fc.property(described, text, text, (finding, comment, name) => {
      const by = { userId: 'user_1', apiKeyId: null }
      const occasion: Occasion = {
        ...{
          id: `evt_${'a'.repeat(26)}`,
          kind: 'finding.commented',
          workspaceId: 'ws_1',
          at: '2026-11-21T10:15:30.000Z',
        },
        findingId: finding.findingId,
        entry: {
          id: `act_${'0'.repeat(20)}`,
          createdAt: '2026-11-21T10:15:30.000Z',
          by,
          action: 'commented',
          text: comment,
        },
      }
      const names = {
        consoleUrl: 'https://penstock.example/console/',
        surface: { id: 'srf_1', name },
        people: new Map([['user_1', name]]),
      }
      const event = JSON.parse(JSON.stringify(eventOf(occasion, finding, names)))
      expect(alertEventSchema.safeParse(event).error?.issues).toBeUndefined()
    }),
    { numRuns: 200 },
  )
})
