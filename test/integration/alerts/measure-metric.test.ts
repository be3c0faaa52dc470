import { expect, it } from 'vitest'
import { measureMetric } from '../../../alerts/measuring/measure-metric.ts'
import { holdMsOf, type Instants, type MeasureDeps } from '../../../alerts/measuring/reading.ts'
import { transitions } from '../../../alerts/measuring/transitions.ts'
import type { AlertRule } from '../../../schemas/records/alerts.ts'
import { MINUTE_MS } from '../../../schemas/units.ts'
import { PermanentError } from '../../../shared/runtime/errors.ts'
import { call, signToken } from '../../support/services/api.ts'
import { api, BASE_MS, client, gauge, newName, type Sent, store } from '../api/metrics/fixture.ts'

type Metric = NonNullable<AlertRule['metric']>

const ruleOf = (metric: Metric): AlertRule => ({ name: 'load', kinds: ['metric.threshold'], metric })
const deps = { clickhouse: client, directory: {}, settledMs: undefined } as unknown as MeasureDeps
const minutesFrom = (from: number, to: number): Instants => ({
  ...{ fromMs: BASE_MS + from * MINUTE_MS, toMs: BASE_MS + to * MINUTE_MS, stepMs: MINUTE_MS },
})
const measure = (metric: Metric, instants = minutesFrom(0, 10), workspaceId = 'ws_1') =>
  measureMetric(deps, { workspaceId, rule: ruleOf(metric), instants }, AbortSignal.timeout(30_000))
const minuteOf = ({ atMs }: { readonly atMs: number }) => (atMs - BASE_MS) / MINUTE_MS

/** Points at the beginning of minutes. */
const points = (values: Readonly<Record<number, number>>, labels?: Record<string, string>): Sent[] =>
  Object.entries(values).map(([minute, value]) => ({ at: Number(minute) * 60, value, ...(labels && { labels }) }))

it('finds the instants at which a value is above a threshold, or below it', async () => {
  const name = newName()
  await store([gauge(name, points({ 1: 5, 2: 6, 3: 9, 4: 5, 5: 1 }))])
  const expression = `{"${name}"}`
  const above = await measure({ expression, above: 5, minutes: 1 }, minutesFrom(0, 5))
  expect(above.map(minuteOf)).toEqual([2, 3])
  expect(above[1]).toMatchObject({
    subject: { service: 'shop' },
    measured: { value: 9, threshold: 5, unit: '', minutes: 1, expression, what: expect.stringContaining(name) },
  })
  expect((await measure({ expression, below: 5, minutes: 1 }, minutesFrom(0, 5))).map(minuteOf)).toEqual([5])
})

it('follows each series by itself, and names it as PromQL does', async () => {
  const name = newName()
  const high = points({ 1: 9, 2: 9, 3: 9, 4: 9 }, { host: 'a' })
  await store([gauge(name, [...high, ...points({ 1: 1, 2: 9, 3: 1, 4: 1 }, { host: 'b' })])])
  const metric = { expression: `max by (host) ({"${name}"})`, above: 5, minutes: 3 }
  const readings = await measure(metric, minutesFrom(0, 4))
  const held = readings.map(reading => `${minuteOf(reading)} ${reading.subject.series}`)
  expect(held.toSorted()).toEqual(['1 {host="a"}', '2 {host="a"}', '2 {host="b"}', '3 {host="a"}', '4 {host="a"}'])
  expect(readings[0]?.measured.what).toBe(`{host="a"} of ${metric.expression}`)
  const holdMs = holdMsOf(ruleOf(metric), 'metric.threshold')
  const { begun, ended } = transitions([], readings, minutesFrom(0, 4), holdMs)
  expect(begun.map(one => [minuteOf(one), one.subject.series])).toEqual([[4, '{host="a"}']])
  expect(ended).toEqual([])
})

it('has no reading in a gap of the data, which ends a condition', async () => {
  const name = newName()
  await store([gauge(name, points({ 1: 9, 20: 9 }))])
  const readings = await measure({ expression: `{"${name}"}`, above: 5, minutes: 1 }, minutesFrom(0, 21))
  // A sample counts for less than five minutes.
  expect(readings.map(minuteOf)).toEqual([1, 2, 3, 4, 5, 20, 21])
  const { begun, ended } = transitions([], readings, minutesFrom(0, 21), MINUTE_MS)
  expect([begun.map(minuteOf), ended.map(minuteOf)]).toEqual([[2, 21], [10]])
})

it('writes what is infinite as the largest number, and does not compare what is not a number', async () => {
  const name = newName()
  await store([gauge(name, points({ 1: 1 }))])
  const instants = minutesFrom(0, 1)
  const [infinite] = await measure({ expression: `{"${name}"} / 0`, above: 5, minutes: 1 }, instants)
  expect(infinite?.measured.value).toBe(1e300)
  expect(await measure({ expression: `0 * {"${name}"} / 0`, above: -1, minutes: 1 }, instants)).toEqual([])
  const [scalar] = await measure({ expression: 'vector(7) > 6', above: 5, minutes: 1 }, instants)
  expect(scalar).toMatchObject({ subject: { series: '{}' }, measured: { value: 7, what: 'vector(7) > 6' } })
})

it('never reads what another workspace sent', async () => {
  const name = newName()
  await store([gauge(name, points({ 1: 9 }))])
  const metric = { expression: `{"${name}"}`, above: 5, minutes: 1 }
  expect(await measure(metric, minutesFrom(0, 2), 'ws_2')).toEqual([])
  expect(await measure(metric, minutesFrom(0, 2))).toHaveLength(2)
})

it('keeps the series with the largest excess where there are too many', async () => {
  const name = newName()
  const sent = Array.from({ length: 1_200 }, (_, i) => ({ at: 60, value: i, labels: { i: String(i) } }))
  await store([gauge(name, sent)])
  const above = await measure({ expression: `{"${name}"}`, above: -1, minutes: 1 }, minutesFrom(0, 1))
  expect(above).toHaveLength(1_000)
  expect(Math.min(...above.map(({ measured }) => measured.value))).toBe(200)
  const below = await measure({ expression: `{"${name}"}`, below: 1_200, minutes: 1 }, minutesFrom(0, 1))
  expect(Math.max(...below.map(({ measured }) => measured.value))).toBe(999)
})

it('refuses to evaluate what needs too much, and what no server understands', async () => {
  const name = newName()
  await store([gauge(name, points({ 1: 9 }, { a: 'b' }))])
  const refused = (expression: string, instants?: Instants) => measure({ expression, above: 1, minutes: 1 }, instants)
  await expect(refused(`{"${name}", a=~"("}`)).rejects.toThrow(PermanentError)
  await expect(refused(`{"${name}", a=~"("}`)).rejects.toThrow(/regexp/)
  await expect(refused('{__name__=~"a.*"}')).rejects.toThrow(/name of one metric/)
})

it('is tried on the past, in a thread', async () => {
  const name = newName()
  await store([gauge(name, points({ 5: 9, 10: 9, 15: 9, 20: 1, 25: 1 }))])
  const bearer = await signToken()
  const rule = (metric: Metric) => ({ rule: ruleOf(metric) })
  const metric = { expression: `{"${name}"}`, above: 5, minutes: 10 }
  const tried = await call(api.baseUrl, 'POST /v3/alerts/try', { bearer, body: rule(metric) })
  const at = (minute: number) => new Date(BASE_MS + minute * MINUTE_MS).toISOString()
  expect(tried).toMatchObject({
    status: 200,
    body: {
      ...{ events: 2, messages: 2, unknown: [] },
      calls: [
        { at: at(20), kind: 'metric.threshold', resolved: true, value: 9 },
        { at: at(15), kind: 'metric.threshold', resolved: false, value: 9, unit: '' },
      ],
    },
  })
  const long = { ...metric, expression: `sum_over_time({"${name}"}[30d])` }
  expect(await call(api.baseUrl, 'POST /v3/alerts/try', { bearer, body: rule(long) })).toMatchObject({
    status: 200,
    body: { events: 0, unknown: [{ kind: 'metric.threshold', reason: expect.stringMatching(/at most 31 days/) }] },
  })
})

it.each([
  ['sum(', /^rules\[1\]\.metric\.expression is invalid: .*parse error: unexpected end of input/],
  ['up[5m]', /rules\[1\].metric.expression is invalid: invalid expression type "range vector"/],
  ['"text"', /invalid expression type "string"/],
  ['up and 1', /expected type instant vector/],
  ['nothing(up)', /unknown function with name "nothing"/],
  ['{code="500"}', /without the name of one metric/],
  ['rate(up[40d])', /must read at most 31 days/],
  [Array.from({ length: 11 }, (_, i) => `m${i}`).join(' + '), /at most 10 selectors/],
])('refuses a rule with the expression %s when it is stored', async (expression, message) => {
  const bearer = await signToken()
  const rule = (of: string) => ({
    name: of.slice(0, 20),
    kinds: ['metric.threshold'],
    metric: { expression: of, above: 1, minutes: 5 },
  })
  const body = { revision: 0, receivers: [], rules: [rule('sum(up) / 2'), rule(expression)] }
  const answer = await call(api.baseUrl, 'PUT /v3/alerts', { bearer, body })
  expect(answer).toMatchObject({ status: 400, body: { message: expect.stringMatching(message) } })
})
