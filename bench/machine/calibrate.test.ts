import { expect, it } from 'vitest'
import { type Calibration, voidReasons } from './calibrate.ts'

const calm: Calibration = {
  oneCore: 4_000,
  allCores: 7_600,
  fsyncP50Ms: 0.3,
  fsyncP99Ms: 1,
  echoP50Ms: 0.04,
  echoP99Ms: 0.2,
}

it('accepts a machine that is the same before and after', () => {
  expect(voidReasons(calm, { ...calm, oneCore: 3_500, allCores: 8_700 }, 0.01)).toEqual([])
})

it('ignores changes below the noise of the measurement', () => {
  expect(voidReasons(calm, { ...calm, fsyncP50Ms: 0.39, echoP50Ms: 0.08 }, 0)).toEqual([])
})

it('ignores the slowest operations, of which there are too few', () => {
  expect(voidReasons(calm, { ...calm, fsyncP99Ms: 30, echoP99Ms: 15 }, 0)).toEqual([])
})

it.each<[string, Partial<Calibration>, number, string]>([
  ['a slower core', { oneCore: 3_300 }, 0, 'one core changed by -17 %'],
  ['faster cores', { allCores: 9_000 }, 0, 'all cores changed by 18 %'],
  ['a slower disk', { fsyncP50Ms: 0.6 }, 0, 'fsync p50 changed by 100 %'],
  ['slower wake-ups', { echoP50Ms: 0.12 }, 0, 'loopback p50 changed by 200 %'],
  ['a host that took CPU time', {}, 0.034, 'the host took 3.4 % of the CPU time'],
])('rejects %s', (_what, after, steal, reason) => {
  expect(voidReasons(calm, { ...calm, ...after }, steal)).toEqual([reason])
})
