import { pino } from 'pino'
import { expect, it } from 'vitest'
import { PermanentError, TransientError } from '../runtime/errors.ts'
import { retryUntilStopped } from './retry.ts'

function setUp(holdsLock = () => true) {
  const stopping = new AbortController()
  let attempts = 0
  const deps = {
    holdsLock: async () => holdsLock(),
    logger: pino({ level: 'silent' }),
    stopping: stopping.signal,
    onAttempt: () => void attempts++,
  }
  return { deps, stopping, attempts: () => attempts }
}

it('repeats what fails for a passing reason', async () => {
  const { deps, attempts } = setUp()
  const work = async () => {
    if (attempts() < 3) throw new TransientError('away')
    return 'done'
  }
  expect(await retryUntilStopped(deps, 'work', work)).toBe('done')
  expect(attempts()).toBe(3)
})

it('does not repeat what will always fail', async () => {
  const { deps, attempts } = setUp()
  await expect(retryUntilStopped(deps, 'work', () => Promise.reject(new PermanentError('never')))).rejects.toThrow(
    PermanentError,
  )
  expect(attempts()).toBe(1)
})

it('ends when the work is no longer ours', async () => {
  let ours = true
  const { deps } = setUp(() => ours)
  const work = async () => {
    ours = false
    throw new TransientError('away')
  }
  await expect(retryUntilStopped(deps, 'work', work)).rejects.toThrow('the lock of the job was lost')
})

it('ends its waiting when we are stopping', async () => {
  const { deps, stopping } = setUp()
  const work = async () => {
    stopping.abort()
    throw new TransientError('away')
  }
  await expect(retryUntilStopped(deps, 'work', work)).rejects.toThrow('stopped while the store was away')
})
