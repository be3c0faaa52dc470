import { describe, expect, it } from 'vitest'
import type { RecordedEntry } from '../stage/messages.ts'
import { keysOf, merged } from './entries.ts'

const entry = (at: number, text: string): RecordedEntry => ({ at, kind: 'console', isError: false, text })

describe('recorded entries', () => {
  it('are in the order of time, and not repeated when a portion is read again', () => {
    const known = merged([], [entry(3, 'c'), entry(1, 'a')])
    expect(merged(known, [entry(2, 'b'), entry(3, 'c')]).map(({ text }) => text)).toEqual(['a', 'b', 'c'])
    expect(merged(known, [entry(1, 'a')])).toBe(known)
  })

  it('have different keys, also when a page writes the same line several times at once', () => {
    const all = merged([], [entry(1, 'a'), entry(1, 'b'), entry(1, 'a'), entry(1, 'a 1')])
    expect(all).toHaveLength(4)
    expect(new Set(keysOf(all)).size).toBe(4)
    expect(keysOf(all).slice(0, 2)).toEqual(keysOf(all.slice(0, 2)))
  })
})
