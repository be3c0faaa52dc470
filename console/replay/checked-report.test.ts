import { describe, expect, it } from 'vitest'
import { checkedReport } from './checked-report.ts'
import { clockTime } from './words.ts'

const entry = (at: unknown) => ({ at, kind: 'console', isError: true, text: 'log: hello' })
const recorded = (...entries: unknown[]) => checkedReport({ kind: 'recorded', run: 1, entries })

describe('a report of the stage', () => {
  it.each([1e300, -1e300, 8.64e15 + 1, -1, Number.NaN, Number.POSITIVE_INFINITY, '5', null])(
    'loses an entry whose time is %s, and keeps those around it',
    at => {
      expect(recorded(entry(5), entry(at), entry(7))).toMatchObject({ entries: [{ at: 5 }, { at: 7 }] })
    },
  )

  it('has only times that can be formatted', () => {
    const report = recorded(entry(0), entry(253_402_300_799_999))
    const entries = report?.kind === 'recorded' ? report.entries : []
    expect(entries.map(({ at }) => clockTime(at)).every(text => text.length > 0)).toBe(true)
    expect(checkedReport({ kind: 'activity', run: 1, times: [1, 1e300, 2] })).toMatchObject({ times: [1, 2] })
  })

  it('is ignored if its form is unknown', () => {
    expect([undefined, null, 5, {}, { kind: 'other' }].map(checkedReport)).toEqual(Array(5).fill(undefined))
  })

  it('has sizes and texts within bounds', () => {
    expect(checkedReport({ kind: 'size', width: 1e9, height: -4 })).toEqual({ kind: 'size', width: 20_000, height: 1 })
    expect(recorded({ ...entry(1), text: 'x'.repeat(5_000) })).toMatchObject({ entries: [{ text: 'x'.repeat(1_000) }] })
  })
})
