import { describe, expect, it } from 'vitest'
import type { GoalLine } from '../goals.ts'
import type { Calibration } from '../machine/calibrate.ts'
import type { Row } from '../support/scenario.ts'
import { goalsOf, summarizeScenario, unmeasuredGoals } from './summary.ts'

const GOALS: GoalLine[] = [
  { scenario: 'edge', row: 'product', goal: { atLeast: 40 } },
  { scenario: 'edge', row: 'product', to: 'peer', goal: { atLeast: 3.1 } },
  { scenario: 'edge', row: 'memory', goal: { atMost: 200 } },
]
const EDGE = { name: 'edge', question: 'How fast?', seconds: 12, goals: GOALS }

const summarized = (...rows: Row[]) => summarizeScenario(EDGE, { rows, method: '3 rounds' })

const peer: Row = { name: 'peer', unit: 'requests/s', samples: [10, 20, 30] }

describe('summarizeScenario', () => {
  it('returns the median and range of each row, and of ratios round by round', () => {
    const product: Row = { name: 'product', unit: 'requests/s', samples: [40, 40, 90], ratios: [{ to: 'peer' }] }
    const [row] = summarized(product, peer).rows
    expect(row?.value).toEqual({ median: 40, min: 40, max: 90 })
    expect(row?.ratios).toEqual([{ to: 'peer', value: { median: 3, min: 2, max: 4 }, verdict: expect.anything() }])
  })

  it('judges goals of rows and ratios by the median, including the bound itself', () => {
    const product: Row = {
      name: 'product',
      unit: 'requests/s',
      samples: [40, 40, 90],
      ratios: [{ to: 'peer' }],
    }
    const memory: Row = { name: 'memory', unit: 'MB', samples: [200.5] }
    expect(goalsOf([summarized(product, peer, memory)])).toEqual([
      expect.objectContaining({ scenario: 'edge', row: 'product', goal: { atLeast: 40 }, met: true }),
      expect.objectContaining({ scenario: 'edge', row: 'product', to: 'peer', goal: { atLeast: 3.1 }, met: false }),
      expect.objectContaining({ scenario: 'edge', row: 'memory', goal: { atMost: 200 }, met: false }),
    ])
  })

  it.each<[string, Row[], RegExp]>([
    ['two rows with one name', [peer, peer], /two rows with one name/],
    ['a ratio to an unknown row', [{ ...peer, ratios: [{ to: 'nobody' }] }], /"nobody", which is not a row/],
    ['a ratio to other rounds', [{ ...peer, name: 'a', samples: [1], ratios: [{ to: 'peer' }] }, peer], /same rounds/],
    ['no samples', [{ ...peer, samples: [] }], /"peer" has no samples/],
    [
      'a sample that is not a number',
      [{ ...peer, samples: [1, Number.NaN] }],
      /"peer" is not a number in every round: 1, NaN/,
    ],
    [
      'a ratio to zero',
      [
        { ...peer, samples: [1], ratios: [{ to: 'zero' }] },
        { ...peer, name: 'zero', samples: [0] },
      ],
      /"peer" over "zero"/,
    ],
  ])('rejects %s', (_what, rows, message) => {
    expect(() => summarized(...rows)).toThrow(message)
  })

  it('keeps what the rounds measured that did not fail, and has no ratio for the others', () => {
    const product: Row = { name: 'product', unit: 'requests/s', samples: [40, null, 90], ratios: [{ to: 'peer' }] }
    const [row] = summarized(product, peer).rows
    expect(row?.value).toEqual({ median: 65, min: 40, max: 90 })
    expect(row?.ratios[0]?.value).toEqual({ median: 3.5, min: 3, max: 4 })
  })

  it('leaves out rows and ratios without a sample, if rounds have failed, and reports their goals as not measured', () => {
    const product: Row = { name: 'product', unit: 'requests/s', samples: [40], ratios: [{ to: 'peer' }] }
    const memory: Row = { name: 'memory', unit: 'MB', samples: [null] }
    const failures = ['round 1/1: peer: 503']
    const scenario = summarizeScenario(EDGE, { rows: [product, memory], method: '1 round', failures })
    expect(scenario.rows.map(({ name, ratios }) => [name, ratios])).toEqual([['product', []]])
    expect(scenario.failures).toEqual(failures)
    expect(unmeasuredGoals(['edge'], [scenario], GOALS)).toEqual([GOALS[1], GOALS[2]])
    expect(unmeasuredGoals(['other'], [scenario], GOALS)).toEqual([])
  })

  it('judges no goal while the machine changed', () => {
    const product: Row = { name: 'product', unit: 'requests/s', samples: [40] }
    const calibration = {} as Calibration
    const machine = { before: calibration, after: calibration, stealShare: 0, void: ['one core changed by 30 %'] }
    const scenario = summarizeScenario({ ...EDGE, machine }, { rows: [product], method: '1 round' })
    expect(goalsOf([scenario])).toEqual([expect.objectContaining({ row: 'product', isVoid: true })])
  })
})
