import { describe, expect, it } from 'vitest'
import { neighbourOf, type SessionError, type VisitedError } from './session-errors.ts'

const error = (at: number, text: string): SessionError => ({ at, text })
const ERRORS = [error(1_000, 'a'), error(10_000, 'b'), error(11_000, 'c'), error(11_000, 'd'), error(30_000, 'e')]
const START = 5_000

/** Goes among the errors as the player does, two seconds before each but not before its beginning. */
function walk(from: number, ...directions: (1 | -1)[]): string[] {
  let time = from
  let visited: VisitedError | undefined
  return directions.map(direction => {
    const found = ERRORS[neighbourOf(ERRORS, direction, time, visited)]
    if (found === undefined) return '-'
    time = Math.max(found.at - 2_000, START)
    visited = { error: found, from: time }
    return found.text
  })
}

describe('the next error', () => {
  it('skips none that is near to another one, or at the same time', () => {
    expect(walk(START, 1, 1, 1, 1, 1)).toEqual(['b', 'c', 'd', 'e', '-'])
    expect(walk(30_001, -1, -1, -1, -1, -1, -1)).toEqual(['e', 'd', 'c', 'b', 'a', '-'])
    expect(walk(9_000, 1, 1, -1)).toEqual(['b', 'c', 'b'])
  })

  it('is the one after the time if the user has gone elsewhere', () => {
    const visited = { error: ERRORS[1] as SessionError, from: 8_000 }
    expect(neighbourOf(ERRORS, 1, 10_500, visited)).toBe(2)
    expect(neighbourOf(ERRORS, -1, 10_500, visited)).toBe(1)
    expect(neighbourOf(ERRORS, 1, 7_000, visited)).toBe(1)
    expect(neighbourOf(ERRORS, 1, 9_500, visited)).toBe(2)
  })
})
