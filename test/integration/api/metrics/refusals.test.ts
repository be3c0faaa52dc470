import { describe, expect, it } from 'vitest'
import { DAY_S } from '../../../../schemas/units.ts'
import { packedNumbers } from '../../../support/packed-sql.ts'
import {
  ask,
  askSeries,
  BASE_MS,
  client,
  deltas,
  gauge,
  histogram,
  iso,
  nano,
  newName,
  readValues,
  type SentMetric,
  type SeriesParameters,
  store,
  sum,
} from './fixture.ts'

const point = { at: 60, since: 0, value: 1 }
const distribution = { timeUnixNano: nano(60), startTimeUnixNano: nano(0), count: 4n, sum: 6 }

const exponential = (name: string): SentMetric => ({
  name,
  data: { case: 'exponentialHistogram', value: { aggregationTemporality: 1, dataPoints: [distribution] } },
})
const summary = (name: string): SentMetric => ({
  name,
  data: {
    case: 'summary',
    value: { dataPoints: [{ ...distribution, quantileValues: [{ quantile: 0.5, value: 1 }] }] },
  },
})

const refusal = (message: RegExp) => ({
  status: 400,
  body: { code: 'REQUEST_INVALID', message: expect.stringMatching(message), service: 'api-analytics' },
})

describe('an aggregation', () => {
  it.each<[string, (name: string) => SentMetric, SeriesParameters, RegExp]>([
    [
      'the rate of a gauge',
      name => gauge(name, [point]),
      { aggregation: 'rate' },
      /one of average, last, max, min, sum for a gauge$/,
    ],
    [
      'the average of a monotonic sum',
      name => sum(name, [point]),
      { aggregation: 'average' },
      /one of rate, sum for a monotonic sum$/,
    ],
    ['the last delta', name => deltas(name, [point]), { aggregation: 'last' }, /one of rate, sum for a monotonic sum$/],
    [
      'the maximum of a histogram',
      name => histogram(name, [{ at: 60, counts: [1, 0], bounds: [1] }]),
      { aggregation: 'max' },
      /one of average, rate, sum, quantile for a histogram$/,
    ],
    [
      'the minimum of an exponential histogram',
      exponential,
      { aggregation: 'min' },
      /one of average, rate, sum, quantile for an exponential histogram$/,
    ],
    [
      'a quantile of a summary',
      summary,
      { aggregation: 'quantile', quantile: '0.5' },
      /one of average, rate, sum for a summary$/,
    ],
    [
      'any of points without a temporality',
      name => sum(name, [point], { aggregationTemporality: 0 }),
      {},
      /^name is that of a metric with points without an aggregation temporality/,
    ],
  ])('that does not fit is refused: %s', async (_, metric, parameters, message) => {
    const name = newName()
    await store([metric(name)])
    expect(await askSeries(name, parameters)).toMatchObject(refusal(message))
  })

  it('of an exponential histogram and of a summary is one of their counts and sums', async () => {
    const [delta, cumulative] = [newName(), newName()]
    await store([exponential(delta), summary(cumulative)])
    for (const name of [delta, cumulative]) {
      expect(await readValues(name, { to: 60 })).toEqual([1.5])
      expect(await readValues(name, { to: 60, aggregation: 'rate' })).toEqual([4 / 60])
    }
  })
})

describe('GET /v3/metrics/{name}/series', () => {
  it.each<[Record<string, string>, RegExp]>([
    [{ step: '0' }, /^step must be a whole number from 1 to 86400/],
    [{ step: '1', to: iso(1_001) }, /^step divides the range into 1001 steps, of which there may be 1000/],
    [{ to: iso(32 * DAY_S) }, /^from must be at most 31 days before "to"/],
    [{ aggregation: 'median' }, /^aggregation must be one of average, /],
    [{ aggregation: 'quantile' }, /^quantile must be given with aggregation=quantile/],
    [{ quantile: '0.5' }, /^quantile must be given with aggregation=quantile, and only then/],
    [{ aggregation: 'quantile', quantile: '1.5' }, /^quantile must be a number from 0 to 1/],
    [{ groupBy: 'http.route' }, /^groupBy must be a JSON list of at most 8 labels/],
    [{ groupBy: JSON.stringify(Array(9).fill('a')) }, /^groupBy must be a JSON list/],
    [{ filter: '["a"]' }, /^filter must be a JSON object of at most 8 labels/],
    [{ filter: '{"a":1}' }, /^filter must be a JSON object/],
    [{ type: 'counter' }, /^type must be one of gauge, sum, /],
  ])('refuses %j', async (parameters, message) => {
    const answer = await ask('/v3/metrics/any/series', { from: iso(0), to: iso(240), ...parameters })
    expect(answer).toMatchObject(refusal(message))
  })

  it('refuses a range with too many points, instead of reading them', async () => {
    const name = newName()
    await client.command({
      query: `
        INSERT INTO metric_points (workspace_id, surface_id, received_at, metric_name, type, series_id, time_unix_nano, value_type, as_int)
        SELECT 'ws_1', 'srf_1', now64(3), '${name}', 'gauge', number % 100, ${nano(0)} + number, 'int', 1
        FROM numbers(10100000)`,
      clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
    })
    const range = { from: new Date(BASE_MS).toISOString(), to: iso(60) }
    const answer = await ask(`/v3/metrics/${name}/series`, range)
    expect(answer).toMatchObject(refusal(/^from and to contain too many points: request a shorter range/))
    expect(await ask('/v3/metrics', { ...range, prefix: name })).toMatchObject(refusal(/contain too many points/))
    const empty = { from: iso(3_600), to: iso(3_660) }
    expect((await ask(`/v3/metrics/${name}/series`, empty)).status).toBe(404)
  }, 120_000)

  it('refuses quantiles that need too much memory, and reads those of a shorter range', async () => {
    const name = newName()
    const minutes = 1_440
    await client.command({
      query: `
        INSERT INTO metric_points (workspace_id, surface_id, received_at, metric_name, type, aggregation_temporality, series_id,
          time_unix_nano, count, bounds, counts)
        SELECT 'ws_1', 'srf_1', now64(3), '${name}', 'histogram', 'cumulative', number % 1000,
          ${nano(-60 * minutes)} + intDiv(number, 1000) * 60000000000, 15 * intDiv(number, 1000),
          ${packedNumbers('arrayMap(i -> toFloat64(i), range(14))')},
          ${packedNumbers('arrayMap(i -> intDiv(number, 1000), range(15))')}
        FROM numbers(${minutes * 1_000})`,
      clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
    })
    const quantile = { aggregation: 'quantile', quantile: '0.5' }
    const ofDay = { from: iso(-60 * minutes), to: iso(0), ...quantile }
    expect(await ask(`/v3/metrics/${name}/series`, ofDay)).toMatchObject(refusal(/contain too many points/))
    const ofHour = { from: iso(-3_600), to: iso(0), ...quantile }
    expect((await ask(`/v3/metrics/${name}/series`, ofHour)).status).toBe(200)
  }, 120_000)
})
