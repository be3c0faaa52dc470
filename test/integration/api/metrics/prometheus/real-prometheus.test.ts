import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findPrometheus, type Prometheus } from '../../../../support/prometheus/find-prometheus.ts'
import { type RunningPrometheus, startPrometheus } from '../../../../support/prometheus/start-prometheus.ts'
import { BASE_MS, gauge, histogram, type SentMetric, store, sum } from '../fixture.ts'
import { askPrometheus } from './fixture.ts'

const found = findPrometheus()
if (typeof found === 'string') console.log(`\nSKIPPED, no query was compared with a real Prometheus: ${found}\n`)
const commands = found as Prometheus

/** Samples of a series, in seconds after the beginning. Never at a whole second, where ends of windows are. */
type Samples = readonly (readonly [at: number, value: number])[]
type Labels = Readonly<Record<string, string>>

const every = (seconds: number, count: number, valueAt: (i: number) => number, offset = 0.137): Samples =>
  Array.from({ length: count }, (_, i) => [i * seconds + offset, valueAt(i)] as const)

/** A counter that begins again twice, one with a gap of ten minutes, and one that is too short for a rate at most times. */
const COUNTERS: readonly (readonly [Labels, Samples])[] = [
  [{ code: '200', route: '/a' }, every(15, 120, i => (i < 50 ? i * 3 : i < 90 ? (i - 50) * 4 + 1 : (i - 90) * 2))],
  [{ code: '200', route: '/b' }, every(15, 120, i => 1_000 + i * i).filter(([at]) => at < 600 || at > 1_200)],
  [{ code: '500', route: '/a' }, every(30, 60, i => Math.floor(i / 7), 3.701)],
  [{ code: '500', route: '/b' }, every(400, 4, i => i * 10, 7.3)],
]
const GAUGES: readonly (readonly [Labels, Samples])[] = [
  [{ route: '/a', host: 'one' }, every(20, 90, i => Math.sin(i) * 10)],
  [{ route: '/a', host: 'two' }, every(20, 90, i => Math.cos(i) * 10, 5.511)],
  [{ route: '/b', host: 'one' }, every(20, 30, i => i - 15)],
]
const BOUNDS = [0.1, 0.5, 1]
const HISTOGRAMS: readonly (readonly [Labels, (i: number) => readonly number[]])[] = [
  [{ route: '/a' }, i => [2 * i, i, Math.floor(i / 3), Math.floor(i / 10)]],
  [{ route: '/b' }, i => [0, i, 4 * i, 0]],
]

function metrics(): SentMetric[] {
  const points = (all: typeof COUNTERS) =>
    all.flatMap(([labels, samples]) => samples.map(([at, value]) => ({ at, value, labels })))
  const histograms = HISTOGRAMS.flatMap(([labels, counts]) =>
    every(15, 100, i => i).map(([at, i]) => ({ at, labels, counts: counts(i), bounds: BOUNDS, total: i * 2.5 })),
  )
  return [sum('requests_total', points(COUNTERS)), gauge('load', points(GAUGES)), histogram('latency', histograms)]
}

/** The same samples in the text format of OpenMetrics. */
function openMetrics(): string {
  const line = (name: string, labels: Labels, at: number, value: number) => {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${text}"`)
    return `${name}{${pairs}} ${value} ${(BASE_MS / 1_000 + at).toFixed(3)}\n`
  }
  const plain = (name: string, all: typeof COUNTERS) =>
    all.flatMap(([labels, samples]) => samples.map(([at, value]) => line(name, labels, at, value)))
  const buckets = HISTOGRAMS.flatMap(([labels, counts]) =>
    every(15, 100, i => i).flatMap(([at, i]) => {
      const sums = counts(i).map((_, bucket) =>
        counts(i)
          .slice(0, bucket + 1)
          .reduce((a, b) => a + b, 0),
      )
      return sums.map((value, bucket) =>
        line('latency_bucket', { ...labels, le: String(BOUNDS[bucket] ?? '+Inf') }, at, value),
      )
    }),
  )
  const totals = (suffix: string, value: (i: number, counts: readonly number[]) => number) =>
    HISTOGRAMS.flatMap(([labels, counts]) =>
      every(15, 100, i => i).map(([at, i]) => line(`latency_${suffix}`, labels, at, value(i, counts(i)))),
    )
  return [
    ...plain('requests_total', COUNTERS),
    ...plain('load', GAUGES),
    ...buckets,
    ...totals('sum', i => i * 2.5),
    ...totals('count', (_, counts) => counts.reduce((a, b) => a + b, 0)),
    '# EOF\n',
  ].join('')
}

const QUERIES = [
  'load',
  'load{route="/a"}',
  'load{route=~"/.", host!="two"}',
  'load{host!~"t.*"}',
  'load{host=~""}',
  'load offset 7m',
  'load offset -1m',
  'load - load offset 1m',
  '-load offset 2m',
  'load + sum_over_time(load[2m] offset 1m) - load offset 3m',
  'rate(requests_total[1m])',
  'rate(requests_total[5m])',
  'rate(requests_total[7m13s])',
  'increase(requests_total[20m])',
  'increase(requests_total[10m] offset 3m)',
  'delta(load[2m])',
  'avg_over_time(load[3m])',
  'sum_over_time(load[97s])',
  'min_over_time(load[2m])',
  'max_over_time(load[2m])',
  'count_over_time(requests_total[10m])',
  'last_over_time(load[15m])',
  'present_over_time(load[1m])',
  'sum(rate(requests_total[5m]))',
  'sum by (code) (rate(requests_total[5m]))',
  'sum without (code) (requests_total)',
  'avg by (route) (load)',
  'min(load)',
  'max by (host) (load)',
  'count(load)',
  'count by (absent_label) (load)',
  'group by (route) (load)',
  'stddev(load)',
  'stdvar by (route) (load)',
  'quantile(0.3, load)',
  'topk(1, load)',
  'topk by (route) (1, load)',
  'bottomk(2, requests_total)',
  'histogram_quantile(0.9, rate(latency_bucket[5m]))',
  'histogram_quantile(0.5, sum by (le) (rate(latency_bucket[5m])))',
  'histogram_quantile(0.99, sum by (le, route) (increase(latency_bucket[2m])))',
  'histogram_quantile(2, latency_bucket)',
  'sum(rate(latency_sum[5m])) / sum(rate(latency_count[5m]))',
  'latency_bucket{le="0.5"}',
  '1 + 2 * 3 ^ 2 ^ 0.5 - 7 % 4',
  '-1 ^ 2',
  '-load',
  '1 / 0',
  'load * 2 + 1',
  '10 - load',
  'load % 3',
  'load > 0',
  '0 < load',
  'load > bool 0',
  '1 == bool 1',
  'load - on (route, host) load offset 1m',
  'load / ignoring (host) group_left sum without (host) (load)',
  'sum by (route) (load) * on (route) group_right load',
  'sum by (route) (load) * on (route) group_right () load',
  'load * on (route) group_left (code) max by (route, code) (requests_total{code="200"})',
  'load and on (route) requests_total{code="500"}',
  'load unless load > 3',
  'load{host="one"} or load',
  'load > on (route, host) (load offset 2m)',
  'sum(load) or vector(0)',
  'sum(nothing) or vector(0)',
  'absent(nothing{route="/a"})',
  'absent(load)',
  'abs(load)',
  'ceil(load)',
  'floor(load)',
  'round(load)',
  'round(load, 0.5)',
  'sqrt(abs(load))',
  'exp(load / 100)',
  'ln(abs(load) + 1)',
  'log2(abs(load) + 1)',
  'log10(abs(load) + 1)',
  'sgn(load)',
  'clamp_min(load, 0)',
  'clamp_max(load, scalar(max(load)) / 2)',
  'scalar(load)',
  'time()',
  'vector(time())',
  'sort(load)',
  'sort_desc(load)',
  '{__name__="load", host="two"}',
  'nothing',
]

/** Queries that Prometheus refuses, too. */
const REFUSED = [
  'load + on (route) load',
  'load * on (route) sum by (route, host) (load)',
  'load +',
  'sum(load',
  'rate(load)',
  'load[5m]  + 1',
  'sum(load[5m])',
  'nofunction(load)',
  '{}',
  'load > bool 1 + bool 2',
  '1 > 2',
  '"text" + 1',
  'topk(load)',
  'load[0s]',
  'vector(load)',
  '(load)[5m]',
  'sum(load) offset 1m',
  'load offset 1m [5m]',
]

interface Result {
  readonly resultType: string
  readonly result: readonly { metric: Labels; value?: [number, string]; values?: [number, string][] }[]
}

describe.skipIf(typeof found === 'string')('a real Prometheus with the same samples', () => {
  let dir: string
  let prometheus: RunningPrometheus

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'penstock-promql-'))
    await writeFile(join(dir, 'samples.txt'), openMetrics())
    const args = ['tsdb', 'create-blocks-from', 'openmetrics', join(dir, 'samples.txt'), join(dir, 'data')]
    execFileSync(commands.promtool, args, { stdio: 'ignore' })
    prometheus = await startPrometheus({ command: commands.prometheus, dir, targets: {}, rules: '' })
    await store(metrics())
  })
  afterAll(async () => {
    await prometheus?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  async function both(path: string, parameters: Record<string, string>) {
    const response = await fetch(`${prometheus.url}/api/v1${path}?${new URLSearchParams(parameters)}`)
    const theirs = (await response.json()) as { status: string; data: Result; errorType?: string; error?: string }
    const ours = await askPrometheus(path, parameters)
    return { theirs, ours: ours.body as unknown as typeof theirs }
  }

  it.each(QUERIES)('answers a range query alike: %s', async query => {
    for (const [start, end, step] of [
      [0, 1_800, '60'],
      [-300, 2_400, '37'],
      [600, 660, '1'],
    ] as const) {
      const times = { start: String(BASE_MS / 1_000 + start), end: String(BASE_MS / 1_000 + end), step }
      const { theirs, ours } = await both('/query_range', { query, ...times })
      expect({ query, step, ...ours }).toMatchObject({ status: 'success' })
      expectSame(ours.data, theirs.data)
    }
  })

  it.each(QUERIES)('answers an instant query alike: %s', async query => {
    for (const seconds of [1, 700, 1_500, 2_300]) {
      const { theirs, ours } = await both('/query', { query, time: String(BASE_MS / 1_000 + seconds) })
      expect({ query, ...ours }).toMatchObject({ status: 'success' })
      expectSame(ours.data, theirs.data)
      const order = ({ result }: Result) => JSON.stringify(result.map(({ metric }) => plain(metric)))
      if (/^sort/.test(query)) expect(order(ours.data)).toBe(order(theirs.data))
    }
  })

  it.each(REFUSED)('refuses the same query: %s', async query => {
    const { theirs, ours } = await both('/query', { query, time: String(BASE_MS / 1_000 + 700) })
    // Only Prometheus returns the samples of a range.
    if (query === 'load[0s]') expect(theirs.status).toBe('error')
    expect({ query, status: theirs.status, errorType: theirs.errorType }).toEqual({
      query,
      status: ours.status,
      errorType: ours.errorType,
    })
  })
})

/** Leaves out the labels that only this service has. */
function plain(metric: Labels): Labels {
  const { 'service.name': _, 'surface.id': __, ...labels } = metric
  return Object.fromEntries(Object.entries(labels).sort())
}

/** Compares results, whose numbers may differ in the last digits because they are added in another order. */
function expectSame(ours: Result, theirs: Result): void {
  expect(ours.resultType).toBe(theirs.resultType)
  if (theirs.resultType === 'scalar') {
    const [mine, real] = [ours, theirs].map(({ result }) => result as unknown as [number, string])
    expect(mine?.[0]).toBe(real?.[0])
    expect(isClose(mine?.[1], real?.[1]), `${mine?.[1]} and not ${real?.[1]}`).toBe(true)
    return
  }
  const byLabels = ({ result }: Result) =>
    new Map(result.map(({ metric, value, values }) => [JSON.stringify(plain(metric)), values ?? [value]] as const))
  const [mine, real] = [byLabels(ours), byLabels(theirs)]
  expect([...mine.keys()].sort()).toEqual([...real.keys()].sort())
  for (const [labels, samples] of real) {
    const found = mine.get(labels) as typeof samples
    expect(found.map(sample => sample?.[0])).toEqual(samples.map(sample => sample?.[0]))
    for (const [i, sample] of samples.entries()) {
      expect(
        isClose(found[i]?.[1], sample?.[1]),
        `${labels} at ${sample?.[0]}: ${found[i]?.[1]} and not ${sample?.[1]}`,
      ).toBe(true)
    }
  }
}

function isClose(ours: string | undefined, theirs: string | undefined): boolean {
  const [a, b] = [Number(ours), Number(theirs)]
  return ours === theirs || Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b), 1e-3)
}
