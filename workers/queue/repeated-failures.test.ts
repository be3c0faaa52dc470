import { expect, it } from 'vitest'
import { CONDEMN_AFTER, RepeatedFailures } from './repeated-failures.ts'

function failures() {
  let nowMs = 1_000_000
  const history = new RepeatedFailures(() => nowMs)
  /** Fails the item every half a minute, for an hour, and returns after how many attempts it is condemned. */
  const condemnedAfter = (code: string | undefined, meanwhile: () => void = () => {}) => {
    for (let attempt = 1; attempt <= 120; attempt++) {
      if (history.failed('spans', 'a', code)) return attempt
      nowMs += 30_000
      meanwhile()
    }
    return undefined
  }
  return { history, condemnedAfter, wait: (ms: number) => (nowMs += ms) }
}

it('condemns an item that fails with one code while others of its table are accepted', () => {
  const { history, condemnedAfter } = failures()
  const attempts = condemnedAfter('241', () => history.succeeded('spans', 'b')) ?? 0
  expect(attempts).toBeGreaterThanOrEqual(CONDEMN_AFTER.attempts)
  expect(attempts).toBeLessThan(30)
})

it('condemns nothing while the store refuses everything, or accepts only other tables', () => {
  const { history, condemnedAfter, wait } = failures()
  history.succeeded('spans', 'before the outage')
  wait(1)
  expect(condemnedAfter('252')).toBeUndefined()
  expect(failures().condemnedAfter('252')).toBeUndefined()
  expect(condemnedAfter('252', () => history.succeeded('logs', 'c'))).toBeUndefined()
})

it('counts from the beginning when the code changes or the store did not answer', () => {
  const { history, condemnedAfter } = failures()
  const others = () => history.succeeded('spans', 'b')
  expect(condemnedAfter(undefined, others)).toBeUndefined()
  let attempt = 0
  for (let i = 0; i < 120; i++) {
    others()
    if (history.failed('spans', 'c', String(attempt++ % 2))) throw new Error('condemned')
  }
})

it('shows the attempts of the item that fails longest', () => {
  const { history } = failures()
  expect(history.mostAttempts).toBe(0)
  for (let i = 0; i < 3; i++) history.failed('spans', 'a', '241')
  history.failed('spans', 'b', '241')
  expect(history.mostAttempts).toBe(3)
  history.succeeded('spans', 'a')
  expect(history.mostAttempts).toBe(1)
})
