import { pino } from 'pino'
import { expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import { encodePayload } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { exampleFrame } from '../../test/support/payloads/example-frame.ts'
import { RepeatedFailures } from '../queue/repeated-failures.ts'
import { Suspects } from '../queue/suspects.ts'
import { type StoreReplayDeps, storeReplay } from './store-replay.ts'

it('retries a job and stores nothing of it while the rules of its workspace are unknown', async () => {
  const calls: string[] = []
  const call = (name: string) => async () => {
    calls.push(name)
    throw new TypeError(name)
  }
  const logger = pino({ level: 'silent' })
  const look = async () => ({ payload: encodePayload([exampleFrame('{}', { workspaceId: 'ws_1' })]) })
  const store = { look, untilReplicated: async () => {}, finishJob: call('finish') }
  const deps = {
    ...{ logger, store, inspect: call('inspect'), objects: { putIfAbsent: call('put'), head: call('head') } },
    ...{ memory: new Budget(MIB), failures: new RepeatedFailures(), suspects: new Suspects(store as never, logger) },
    scrubbing: {
      async of(workspaceId: string) {
        throw new TransientError(`the rules of ${workspaceId} are unavailable`)
      },
    },
  } as unknown as StoreReplayDeps
  const job = { jobId: 'job', lane: 'express', token: 't', payloadBytes: 1_000, losses: 0 } as const
  await expect(storeReplay(deps, job)).rejects.toThrow('the rules of ws_1 are unavailable')
  expect(calls).toEqual([])
})
