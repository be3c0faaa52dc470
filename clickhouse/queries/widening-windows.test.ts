import { ClickHouseError } from '@clickhouse/client'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TransientError } from '../../shared/runtime/errors.ts'
import { WideningWindows } from './widening-windows.ts'

/** A list of the times of its entries, searched from `now` in windows of 1, 10 and 100. */
function searchOf(times: readonly number[], { now = 1_000, limit = 3, key = 'a' } = {}) {
  const starts = [now - 1, now - 10, now - 100, 0]
  const asked: number[] = []
  const select = async (since: number) => {
    asked.push(starts.indexOf(since))
    return newest(times.filter(time => time >= since && time <= now)).slice(0, limit)
  }
  return { asked, search: { key, starts, limit, select, timeOf: (time: number) => time } }
}

const newest = (times: readonly number[]) => [...times].sort((a, b) => b - a)

describe('a list that is read in widening windows', () => {
  it('has the newest entries, whatever was enough before', async () => {
    const lists = fc.array(fc.array(fc.nat(1_000), { maxLength: 30 }), { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(lists, async searches => {
        const windows = new WideningWindows()
        for (const times of searches) {
          expect(await windows.find(searchOf(times).search)).toEqual(newest(times).slice(0, 3))
        }
      }),
    )
  })

  it('is read by one query when it is read again, until a shorter window is enough', async () => {
    const windows = new WideningWindows()
    const askedOf = async (times: readonly number[], key = 'a') => {
      const { asked, search } = searchOf(times, { key })
      await windows.find(search)
      return asked
    }
    const ofHundred = [990, 950, 940]
    expect(await askedOf(ofHundred)).toEqual([0, 1, 2])
    expect(await askedOf(ofHundred)).toEqual([2])
    expect(await askedOf(ofHundred, 'b')).toEqual([0, 1, 2])
    expect(await askedOf([1_000, 999, 999])).toEqual([2])
    expect(await askedOf([1_000, 999, 999])).toEqual([0])
    expect(await askedOf([3])).toEqual([0, 1, 2, 3])
    expect(await askedOf([3])).toEqual([3])
  })

  it('is read from the shortest window again if the remembered one has become too large', async () => {
    const windows = new WideningWindows()
    await windows.find(searchOf([3]).search)
    const { asked, search } = searchOf([1_000, 1_000, 999])
    const tooMuch = new TransientError('too much', { cause: new ClickHouseError({ message: '', code: '158' }) })
    const select = async (since: number) => {
      if (since === 0) throw tooMuch
      return search.select(since)
    }
    expect(await windows.find({ ...search, select })).toEqual([1_000, 1_000, 999])
    expect(asked).toEqual([0])
    await expect(new WideningWindows().find({ ...search, starts: [0], select })).rejects.toBe(tooMuch)
  })
})
