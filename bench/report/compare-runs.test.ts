import { describe, expect, it } from 'vitest'
import type { Row } from '../support/scenario.ts'
import { type EarlierRun, readRun, renderComparison } from './compare-runs.ts'
import type { BenchRun } from './report.ts'
import { summarizeScenario } from './summary.ts'

function runOf(rows: Row[], run: Partial<BenchRun> = {}): BenchRun {
  const scenarios = [
    summarizeScenario({ name: 'edge', question: 'How fast?', seconds: 1 }, { rows, method: '3 rounds' }),
  ]
  return { version: 1, quick: false, seconds: 1, facts: { CPU: 'two cores' }, scenarios, failed: [], goals: [], ...run }
}

const product = (...samples: number[]): Row => ({ name: 'product', unit: 'requests/s', samples })

function kept(run: BenchRun): EarlierRun {
  const result = readRun(JSON.stringify(run))
  if (!result.ok) throw new Error(result.reason)
  return result.run
}

const lineOf = (text: string, start: string) =>
  text
    .split('\n')
    .find(line => line.trim().startsWith(start))
    ?.replaceAll(/ {2,}/g, '  ')
    .trim()

describe('readRun', () => {
  it('reads a run that has no changes against itself', () => {
    const run = runOf([product(90, 100, 110)])
    expect(lineOf(renderComparison(run, kept(run)), 'edge: product')).toBe(
      'edge: product  100  100  requests/s  +0.0 % (ranges overlap)',
    )
  })

  it.each([
    ['truncated JSON', '{"version": 1', /^the file is not JSON/],
    ['other JSON', '{"name": "penstock"}', /has no version/],
    ['nothing', 'null', /has no version/],
    ['another version', '{"version": 7}', /has version 7, and only 1 can be read/],
    [
      'a run that lacks figures',
      '{"version":1,"quick":true,"facts":{},"scenarios":[{"name":"a","rows":[{"name":"b","unit":"s","ratios":[]}]}]}',
      /scenarios\.0\.rows\.0\.value/,
    ],
  ])('returns the reason when the file contains %s', (_what, text, reason) => {
    expect(readRun(text)).toEqual({ ok: false, reason: expect.stringMatching(reason) })
  })
})

describe('renderComparison', () => {
  it('shows changes of figures and ratios, and marks overlapping ranges', () => {
    const peer: Row = { name: 'peer', unit: 'requests/s', samples: [10, 10, 10] }
    const before = runOf([{ ...product(90, 100, 110), ratios: [{ to: 'peer' }] }, peer])
    const now = runOf([
      { ...product(140, 150, 160), ratios: [{ to: 'peer' }] },
      { ...peer, samples: [9, 10, 11] },
    ])
    const text = renderComparison(now, kept(before))
    expect(lineOf(text, 'edge: product  ')).toBe('edge: product  100  150  requests/s  +50.0 %')
    expect(lineOf(text, 'edge: product over peer')).toMatch(/^edge: product over peer {2}10 {2}15 {2}× {2}\+50.0 %$/)
    expect(lineOf(text, 'edge: peer')).toBe('edge: peer  10  10  requests/s  +0.0 % (ranges overlap)')
  })

  it('lists other differences, and figures that the earlier run lacks', () => {
    const before = runOf([product(1)], { quick: true, facts: { CPU: 'one core', Redis: '7' } })
    const now = runOf([product(1), { ...product(1), name: 'new' }])
    const text = renderComparison(now, kept(before))
    expect(text).toContain('run: quick → full')
    expect(text).toContain('CPU: one core → two cores')
    expect(text).not.toContain('Redis')
    expect(text).toContain('not in the earlier run: edge: new')
  })

  it('skips figures with another unit, and does not divide by zero', () => {
    const text = renderComparison(runOf([{ ...product(1), unit: 'ms' }]), kept(runOf([product(1)])))
    expect(text).toContain('nothing in common')
    const fromZero = renderComparison(runOf([product(1)]), kept(runOf([product(0)])))
    expect(lineOf(fromZero, 'edge: product')).toBe('edge: product  0  1  requests/s  from nothing')
  })
})
