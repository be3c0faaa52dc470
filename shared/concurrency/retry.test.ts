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

it('repeats an operation that fails with a passing fault', async () => {
  const { deps, attempts } = setUp()
  const work = async () => {
    if (attempts() < 3) throw new TransientError('unavailable')
    return 'done'
  }
  expect(await retryUntilStopped(deps, 'work', work)).toBe('done')
  expect(attempts()).toBe(3)
})

it('does not repeat an operation that always fails', async () => {
  const { deps, attempts } = setUp()
  await expect(retryUntilStopped(deps, 'work', () => Promise.reject(new PermanentError('never')))).rejects.toThrow(
    PermanentError,
  )
  expect(attempts()).toBe(1)
})

it('stops when the lock of the job is lost', async () => {
  let isHeld = true
  const { deps } = setUp(() => isHeld)
  const work = async () => {
    isHeld = false
    throw new TransientError('unavailable')
  }
  await expect(retryUntilStopped(deps, 'work', work)).rejects.toThrow('the lock of the job was lost')
})

it('stops waiting when the process is stopping', async () => {
  const { deps, stopping } = setUp()
  const work = async () => {
    stopping.abort()
    throw new TransientError('unavailable')
  }
  await expect(retryUntilStopped(deps, 'work', work)).rejects.toThrow('stopped while the store was unavailable')
})
