import { expect, it } from 'vitest'
import { entriesOf } from './recorded-entry.ts'
import { EVENT, type RecordedEvent } from './recorded-event.ts'

const line = (...payload: unknown[]): RecordedEvent => ({
  type: EVENT.plugin,
  timestamp: 1_000,
  data: { plugin: 'rrweb/console@1', payload: { level: 'error', payload } },
})

it('shows the arguments of a line of the console as its page wrote them', () => {
  const shown = (...payload: unknown[]) => entriesOf(line(...payload)).map(({ text }) => text)
  expect(shown('"no price of \\"pen\\""', '{"count":2}')).toEqual(['error: no price of "pen" {"count":2}'])
  expect(shown('"not closed', 'not JSON', 7)).toEqual(['error: "not closed not JSON '])
})
