import { S3ServiceException } from '@aws-sdk/client-s3'
import { pino } from 'pino'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { deadLetterSchema } from '../../schemas/queues/dead-letters.ts'
import { Budget } from '../../shared/concurrency/budget.ts'
import { decodePayload, encodePayload } from '../../shared/queue/payload-frame.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import { exampleFrame } from '../../test/support/payloads/example-frame.ts'
import type { Move } from './payloads/payload-store.ts'
import type { TakenJob } from './pool.ts'
import { type FrameDeps, type FramePlan, processFrames } from './process-frames.ts'
import { CONDEMN_AFTER, RepeatedFailures } from './repeated-failures.ts'
import { Suspects } from './suspects.ts'

const logger = pino({ level: 'silent' })
const JOB: TakenJob = { jobId: 'a', lane: 'express', token: '', payloadBytes: 1, losses: 0 }
const PLAN: FramePlan<string> = { queue: 'replay', concurrency: 2, statsOfRefusal: ({ label }) => label }

/** A pool with one job of these bodies. */
function pool(...bodies: string[]) {
  const moves: Move[] = []
  const payload = encodePayload(bodies.map(body => exampleFrame(body)))
  const freed: Buffer[] = []
  let timesAlone = 0
  const failures = new RepeatedFailures()
  const store: FrameDeps['store'] = {
    look: async () => ({ batchId: null, payload }),
    holdsLocks: async () => true,
    async finishJob(_jobId, _done, moved = []) {
      moves.push(...moved)
      return { isFirst: true, leftOut: [] }
    },
    giveBack(buffer) {
      freed.push(buffer)
    },
  }
  const newSuspects = () =>
    new Suspects(
      {
        countAlone: async () => ++timesAlone,
        forgetAlone: async () => {
          timesAlone = 0
        },
      },
      logger,
    )
  const deps: FrameDeps = {
    store,
    failures,
    memory: new Budget(1_000),
    suspects: newSuspects(),
    addJobs: async () => {},
    logger,
    stopping: new AbortController().signal,
  }
  /** The bodies of the dead letters, with their reasons. */
  const letters = () =>
    moves
      .filter(({ queue }) => queue === 'dead-letters')
      .flatMap(({ payload }) => decodePayload(payload))
      .map(({ body, attributes }) => [body.toString(), deadLetterSchema.parse(JSON.parse(attributes)).reason])
  return { deps, newSuspects, letters, failures, freed, payload }
}

const stored = async () => ({ stats: 'stored' })

afterEach(() => vi.useRealTimers())

describe('the memory of a payload', () => {
  const released = async () => ({ stats: 'stored', isReleased: true })

  it('is freed when its job is finished', async () => {
    const { deps, freed, payload } = pool('a', 'b')
    await processFrames(deps, PLAN, JOB, released)
    expect(freed).toEqual([payload])
  })

  it('is left alone while a connection may still send one of its frames', async () => {
    const { deps, freed } = pool('a', 'b')
    await processFrames(deps, PLAN, JOB, ({ body }) => (body.toString() === 'a' ? released() : stored()))
    expect(freed).toEqual([])
  })

  it('is left alone when its job fails, since its other frames may still be in progress', async () => {
    const { deps, freed } = pool('a')
    await expect(processFrames(deps, PLAN, JOB, () => Promise.reject(new TransientError('no route')))).rejects.toThrow()
    expect(freed).toEqual([])
  })
})

describe('a frame that cannot be processed', () => {
  it.each<[string, () => unknown]>([
    ['its attributes are not as the schema requires', () => z.object({ slug: z.string() }).parse({})],
    ['its JSON is cut short', () => JSON.parse('{')],
    ['the code makes a mistake', () => (undefined as unknown as string).length],
    ['its store refuses it', () => Promise.reject(new PermanentError('too large'))],
  ])('becomes a dead letter if %s, and its neighbours are stored', async (_, fault) => {
    const { deps, letters } = pool('a', 'bad', 'c')
    const stats = await processFrames(deps, PLAN, JOB, async ({ body }) => {
      if (body.toString() === 'bad') await fault()
      return { stats: 'stored' }
    })
    expect(stats).toEqual(['stored', 'decoder_fault', 'stored'])
    expect(letters()).toEqual([['bad', expect.stringMatching(/^decoder_fault: \w+Error/)]])
  })

  it.each<[string, Error]>([
    ['of a store', new TransientError('no route')],
    ['of Redis', new Error('Connection is closed.')],
    ['of the memory of the process', new RangeError('Array buffer allocation failed')],
    ['of the network', new TypeError('fetch failed', { cause: new Error('ECONNRESET') })],
  ])('fails its job, which is retried, for a fault %s', async (_, fault) => {
    const { deps } = pool('a')
    await expect(processFrames(deps, PLAN, JOB, () => Promise.reject(fault))).rejects.toThrow(fault.message)
  })
})

describe('a frame that its store refuses again and again', () => {
  const denied = () => {
    const $metadata = { httpStatusCode: 403 }
    const cause = new S3ServiceException({ name: 'AccessDenied', $fault: 'client', $metadata })
    return Promise.reject(new TransientError('S3 put: AccessDenied (403)', { cause }))
  }

  it('gives its place to other jobs, and is refused once others are accepted meanwhile', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'performance'] })
    const { deps, letters, failures } = pool('a')
    let tries = 0
    let outcome: unknown
    while (outcome === undefined && tries < 60) {
      tries++
      const run = processFrames(deps, PLAN, JOB, async (_frame, _index, retry) => {
        await retry('put', denied)
        return { stats: 'stored' }
      }).then(
        stats => {
          outcome = stats
        },
        error => expect(String(error)).toContain('tried again later'),
      )
      await vi.advanceTimersByTimeAsync(120_000)
      await run
      if (tries === 5) expect(outcome).toBeUndefined()
      if (tries > 5) failures.succeeded('objects', 'another')
    }
    expect(outcome).toEqual(['decoder_fault'])
    expect(tries).toBeGreaterThan(CONDEMN_AFTER.ms / 120_000)
    expect(letters()[0]?.[1]).toContain('refused again and again')
  })
})

describe('a job that several workers have lost', () => {
  it('is tried alone, and then set aside without being read', async () => {
    const { deps, newSuspects, letters } = pool('a', 'b')
    const job = { ...JOB, losses: 3 }
    for (let time = 0; time < 2; time++) {
      // A worker that ends never settles its job.
      await new Promise<void>(resolve => {
        const end = () => new Promise<never>(() => resolve())
        void processFrames({ ...deps, suspects: newSuspects() }, PLAN, job, end)
      })
    }
    expect(letters()).toEqual([])
    const stats = await processFrames(deps, PLAN, job, () => Promise.reject(new Error('was read')))
    expect(stats).toEqual(['killed_worker', 'killed_worker'])
    expect(letters()).toEqual(['a', 'b'].map(body => [body, 'killed_worker: 3 workers ended while they had it']))
  })

  it('is not set aside for attempts that fail without an end of their worker, as in an outage', async () => {
    const { deps, letters } = pool('a', 'b')
    const job = { ...JOB, losses: 3 }
    for (let time = 0; time < 5; time++) {
      const outage = () => Promise.reject(new TransientError('the lock of the job was lost'))
      await expect(processFrames(deps, PLAN, job, outage)).rejects.toThrow('the lock of the job was lost')
    }
    expect(await processFrames(deps, PLAN, job, stored)).toEqual(['stored', 'stored'])
    expect(letters()).toEqual([])
  })
})
