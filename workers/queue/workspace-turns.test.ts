import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { encodePayload } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { onOneServer } from '../../test/support/queue-on.ts'
import { createWorkspaceTurns } from './workspace-turns.ts'

/** Creates turns of a pool with two places. The id of a job begins with its workspace. */
function setUp() {
  let closing = false
  const started: string[] = []
  const open = new Map<string, () => void>()
  const redis = {
    async getrangeBuffer(key: string, start: number, end: number) {
      const jobId = key.slice(queue.keys.payloadPrefix.length)
      const frame = {
        receivedAtMs: 0,
        contentType: 'application/json',
        contentEncoding: 'identity',
        attributes: '',
      } as const
      const owner = { workspaceId: jobId.slice(0, 1), surfaceId: 'srf_1' }
      return encodePayload([{ ...frame, ...owner, body: Buffer.alloc(1_000) }]).subarray(start, end + 1)
    },
  }
  const queue = onOneServer(redis as never).firstOf('completions')
  const inTurn = createWorkspaceTurns(() => closing, 2)
  return {
    started,
    run: (jobId: string) =>
      inTurn(queue, jobId, () => {
        started.push(jobId)
        return new Promise<void>(resolve => open.set(jobId, resolve))
      }),
    async finish(jobId: string) {
      open.get(jobId)?.()
      for (let i = 0; i < 5; i++) await nextTurn()
    },
    close: () => {
      closing = true
    },
  }
}

it('processes one job of a workspace at a time, and those of others meanwhile', async () => {
  const { started, run, finish } = setUp()
  const all = ['a1', 'a2', 'a3', 'b1', 'c1'].map(run)
  await finish('')
  expect(started).toEqual(['a1', 'b1'])
  await finish('b1')
  expect(started).toEqual(['a1', 'b1', 'c1'])
  for (const job of ['a1', 'c1', 'a2', 'a3']) await finish(job)
  await Promise.all(all)
  expect(started).toEqual(['a1', 'b1', 'c1', 'a2', 'a3'])
})

it('returns further jobs of a workspace to the queue', async () => {
  const { run, finish } = setUp()
  const jobs = Array.from({ length: 16 }, (_, i) => `a${i}`)
  const all = jobs.map(run)
  await finish('')
  await expect(run('a16')).rejects.toThrow(TransientError)
  const other = run('b1')
  await finish('')
  for (const job of [...jobs, 'b1']) await finish(job)
  await Promise.all([...all, other])
})

it('leaves jobs that wait to the next worker when the pool closes', async () => {
  const { started, run, finish, close } = setUp()
  const [first, second] = [run('a1'), run('a2')]
  await finish('')
  close()
  const left = expect(second).rejects.toThrow('stopped before its turn')
  await finish('a1')
  await Promise.all([first, left])
  expect(started).toEqual(['a1'])
})
