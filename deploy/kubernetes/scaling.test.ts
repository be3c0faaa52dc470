import { readFileSync } from 'node:fs'
import { load } from 'js-yaml'
import { expect, it } from 'vitest'
import { countFlaps, type ScalingRules, simulateScaling } from './scaling-model.ts'

const values = load(readFileSync(new URL('penstock/values.yaml', import.meta.url), 'utf8')) as {
  readonly workers: { readonly autoscaling: ScalingRules }
}
const rules = values.workers.autoscaling

const MB = 1_000_000
const MINUTE = 60
const HOUR = 60 * MINUTE
/** A worker with a core decodes about as much, and one with 0.15 of a core a sixth of it. Starting takes the latter ten seconds. */
const [CORE, SHARE_OF_CORE] = [60 * MB, 9 * MB]
const TEN_MINUTES = 10 * MINUTE
/** Requests are old from this age on, in seconds: each of them adds a worker. */
const OLD = 5

it.each([
  ['a core', CORE, 10],
  ['0.15 of a core', SHARE_OF_CORE, 20],
])(
  'works off a step to three times what one worker with %s takes in two minutes, and keeps its workers',
  (_, bytes, start) => {
    const samples = simulateScaling(rules, {
      seconds: 30 * MINUTE,
      arrivals: atS => (atS < MINUTE ? 0.5 : 3) * bytes,
      workerBytes: bytes,
      startSeconds: start,
    })
    const after = samples.filter(({ atS }) => atS >= 3 * MINUTE)
    expect(Math.max(...after.map(({ ageSeconds }) => ageSeconds))).toBeLessThan(OLD)
    expect(countFlaps(samples, TEN_MINUTES)).toBe(0)
    const end = samples.at(-1)?.workers ?? 0
    expect(end).toBeGreaterThan(3)
    expect(end).toBeLessThan(7)
  },
)

it('would remove and add workers again and again by age and depth alone', () => {
  const samples = simulateScaling(
    { ...rules, busyShare: 1_000 },
    { seconds: 2 * HOUR, arrivals: () => 3 * CORE, workerBytes: CORE, startSeconds: 10 },
  )
  expect(countFlaps(samples, TEN_MINUTES)).toBeGreaterThan(3)
})

/** Returns a number from 0 to 1 that depends on its argument alone. */
function noise(n: number): number {
  const x = Math.sin(n * 12.9898) * 43_758.5453
  return x - Math.floor(x)
}

it('follows a day of load: old requests only for minutes after a burst, no flapping, and few idle workers', () => {
  const bursts = [2, 7.5, 9.25, 13, 13.5, 20].map(hour => ({ from: hour * HOUR, to: hour * HOUR + 8 * MINUTE }))
  const inBurst = (atS: number) => bursts.some(({ from, to }) => atS >= from && atS < to)
  // Between 0.4 at night and 4.6 in the afternoon, in units of a worker, 15 % more or less each minute, and three times as
  // much in bursts.
  const load = (atS: number) => {
    const day = 2.5 - 2.1 * Math.cos(((atS / HOUR - 3) / 24) * 2 * Math.PI)
    return day * (0.85 + 0.3 * noise(Math.floor(atS / MINUTE))) * (inBurst(atS) ? 3 : 1)
  }
  const samples = simulateScaling(
    { ...rules, max: 24 },
    { seconds: 24 * HOUR, arrivals: atS => load(atS) * CORE, workerBytes: CORE, startSeconds: 15 },
  )
  const old = samples.filter(({ ageSeconds }) => ageSeconds >= OLD)
  expect(old.every(({ atS }) => bursts.some(({ from }) => atS >= from && atS < from + 2 * MINUTE))).toBe(true)
  expect(Math.max(...samples.map(({ ageSeconds }) => ageSeconds))).toBeLessThan(60)
  // A burst that begins while workers of another one are being removed may add some of them again.
  expect(countFlaps(samples, TEN_MINUTES)).toBeLessThanOrEqual(bursts.length)
  const workers = samples.reduce((sum, sample) => sum + sample.workers, 0)
  const needed = samples.reduce((sum, { atS }) => sum + load(atS), 0)
  expect(workers / needed).toBeLessThan(2)
})
