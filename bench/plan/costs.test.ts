import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { readCosts } from './costs.ts'
import { measuredPoints } from './example-points.ts'

const calibration = { oneCore: 900, allCores: 1_700, fsyncP50Ms: 0.2 }

function run(different: object = {}, scale: object = {}): string {
  const rows = measuredPoints.flatMap(({ name, ...figures }) => [{ name, figures }, { name: `cost, ${name}` }])
  const machine = { before: calibration, after: calibration, stealShare: 0, void: [] }
  return JSON.stringify({
    version: 1,
    quick: false,
    facts: { Commit: 'abc1234', Date: '2026-11-23 10:00', CPU: 'Example, 2 cores' },
    scenarios: [{ name: 'scale', failures: [], machine, rows, ...scale }],
    ...different,
  })
}

it('reads the points of a run, and where it was measured', () => {
  expect(readCosts(run())).toEqual({
    ok: true,
    costs: {
      points: measuredPoints,
      source:
        'commit abc1234, 2026-11-23 10:00, Example, 2 cores (900 turns/s on one core, 1700 on all, fsync 0.20 ms)',
      doubts: [],
    },
  })
})

it('names every reason for doubt', () => {
  const machine = { before: calibration, void: ['one core changed by 20 %'] }
  const read = readCosts(run({ quick: true }, { machine, failures: ['round 2: 503'] }))
  expect(read.ok && read.costs.doubts).toEqual([
    'it was a quick run, whose figures are not for quoting',
    'one core changed by 20 %',
    'a round failed: round 2: 503',
  ])
})

it.each([
  ['is not JSON', '{', /was not written by/],
  ['is something else', '{}', /was not written by/],
  ['has another scenario', run({}, { name: 'growth' }), /does not have the scenario/],
  ['lacks figures', run({}, { rows: [{ name: '2 workers', figures: { workers: 2 } }] }), /"2 workers" is incomplete/],
  ['lacks points', run({}, { rows: [] }), /not measured with one of each, realistic spans, realistic spans as gzip/],
])('refuses a file that %s', (_what, text, reason) => {
  expect(readCosts(text)).toEqual({ ok: false, reason: expect.stringMatching(reason) })
})

it('reads the costs of this repository', async () => {
  expect(readCosts(await readFile(new URL('costs.json', import.meta.url), 'utf8'))).toMatchObject({ ok: true })
})
