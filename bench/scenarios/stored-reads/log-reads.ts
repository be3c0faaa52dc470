import type { LogHistogram, LogsPage } from '../../../schemas/http/logs.ts'
import { DAY_S, HOUR_S } from '../../../schemas/units.ts'
import { logService, type StoredRecord } from '../../data/fill-logs.ts'
import { pick } from '../../data/stored-traces.ts'
import type { CheckedRead } from '../../measure/reads/checked-reads.ts'

/** Different values of one search, so that none is remembered. */
const VALUES = 40
const PAGE = 100
const RECORDS_PER_TRACE = 5

/** A time in Unix seconds. */
interface Period {
  readonly from: number
  readonly to: number
}

/** Returns the reads of these log records, which are of full hours. */
export function logReads(records: readonly StoredRecord[], endMs: number): CheckedRead[] {
  const picked = pick(records, VALUES)
  const at = (i: number) => picked[i % picked.length] as StoredRecord
  const hour = (i: number): Period => ({ from: at(i).hourMs / 1_000, to: at(i).hourMs / 1_000 + HOUR_S })
  const lastHour = Math.floor(endMs / 1_000 / HOUR_S)
  // Days that end with an hour of the last three days.
  const day = (i: number): Period => {
    const to = (lastHour - (i % 72)) * HOUR_S
    return { from: to - DAY_S, to }
  }
  type Conditions = (i: number) => Record<string, string>
  const page = (
    name: string,
    atLeast: number,
    conditions: Conditions,
    period?: (i: number) => Period,
  ): CheckedRead => ({
    name: `logs: ${name}`,
    atLeast,
    path: i => `/v3/logs?${new URLSearchParams({ ...conditions(i), ...(period && bounds(period(i))) })}`,
    count: body => (JSON.parse(body) as LogsPage).logs.length,
  })
  const histogram = (name: string, conditions: Conditions): CheckedRead => ({
    name: `histogram: ${name}`,
    atLeast: 24,
    path: i => `/v3/logs/histogram?${new URLSearchParams({ ...conditions(i), ...bounds(day(i)), step: '3600' })}`,
    count: body => countSteps(JSON.parse(body) as LogHistogram),
  })
  const attribute: Conditions = i => ({ attribute: `enduser.id=${at(i).user}` })
  return [
    page('newest of an hour', PAGE, () => ({}), hour),
    page('frequent word, an hour', PAGE, () => ({ q: 'payment' }), hour),
    page('rare word, an hour', 1, i => ({ q: at(i).orderId }), hour),
    page('missing word, an hour', 0, i => ({ q: `${at(i).orderId}f` }), hour),
    page('frequent word of a service, an hour', 1, i => ({ q: 'payment', service: logService(i % 4) }), hour),
    page('of a trace', RECORDS_PER_TRACE, i => ({ trace: at(i).traceId })),
    page('rare attribute, an hour', 1, attribute, hour),
    page('rare attribute, a day', 0, attribute, day),
    histogram('a day', () => ({})),
    histogram('frequent word, a day', () => ({ q: 'payment' })),
  ]
}

function bounds({ from, to }: Period): Record<'from' | 'to', string> {
  const time = (seconds: number) => new Date(seconds * 1_000).toISOString()
  return { from: time(from), to: time(to) }
}

/** Counts steps and severities with records. */
function countSteps({ counts }: LogHistogram): number {
  return Object.values(counts).reduce((sum, steps) => sum + steps.filter(records => records > 0).length, 0)
}
