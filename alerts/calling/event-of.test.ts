import fc from 'fast-check'
import { expect, it } from 'vitest'
import { alertEventSchema } from '../../schemas/http/alerts/events.ts'
import { type FindingOccasion, MEASURED_KINDS, type MeasuredOccasion } from '../../schemas/records/alerts.ts'
import { eventOf, measuredEventOf } from './event-of.ts'

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
      const occasion: FindingOccasion = {
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

const ID = `evt_${'a'.repeat(26)}`
const AT = '2026-11-21T10:15:30.000Z'
const consoleUrl = 'https://penstock.example/console/'
const value = fc.double({ noNaN: true, noDefaultInfinity: true })

it('makes a valid event of whatever is measured, whatever clients call their services', () => {
  const measured = fc.record({
    ...{ what: text, value, threshold: value, unit: text, minutes: fc.integer({ min: 1, max: 1_440 }) },
    expression: text,
  })
  const kinds = fc.constantFrom(...MEASURED_KINDS)
  fc.assert(
    fc.property(kinds, measured, text, text, (kind, of, service, environment) => {
      const common = { id: ID, kind, workspaceId: 'ws_1', at: AT, ruleName: 'r', measured: of }
      const occasion: MeasuredOccasion = { ...common, service, environment, resolved: true }
      const surface = { id: 'srf_1', name: service }
      const event = JSON.parse(JSON.stringify(measuredEventOf(occasion, { consoleUrl, surface })))
      expect(alertEventSchema.safeParse(event).error?.issues).toBeUndefined()
      expect(event.data.resolved).toBe(true)
    }),
    { numRuns: 200 },
  )
})

it('leads to the page of the console that shows the value', () => {
  const of = (kind: MeasuredOccasion['kind'], more: Partial<MeasuredOccasion> = {}) => {
    const measured = { what: 'value', value: 1, threshold: 1, unit: '', minutes: 1 }
    const occasion = { id: ID, kind, workspaceId: 'ws_1', at: AT, ruleName: 'r', measured, ...more }
    return measuredEventOf(occasion, { consoleUrl, surface: undefined }).data.links.chart.slice(consoleUrl.length)
  }
  expect(of('service.errors', { service: 'a/b', environment: 'x y' })).toBe('services/a%2Fb?environment=x%20y')
  expect(of('service.latency', { service: 'é'.repeat(400) })).toBe('services')
  expect([of('metric.threshold'), of('surface.silent'), of('pipeline.late')]).toEqual([
    ...['metrics', 'settings/surfaces', 'pipeline'],
  ])
})

it('states that a finding is resolved when a member resolves it', () => {
  const [finding] = fc.sample(described, 1)
  const of = (action: 'resolved' | 'ignored') => {
    const entry = { id: `act_${'0'.repeat(20)}`, createdAt: AT, by: null, action }
    const occasion = { id: ID, kind: 'finding.changed', workspaceId: 'ws_1', at: AT, findingId: 'f', entry } as const
    const names = { consoleUrl, surface: undefined, people: new Map() }
    return finding && eventOf(occasion, finding, names).data.resolved
  }
  expect([of('resolved'), of('ignored')]).toEqual([true, false])
})
