import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { OPEN_PAYLOAD_BYTES } from '../../shared/queue/queue.ts'
import type { NewJob } from './job-writer.ts'
import { OpenJob } from './open-job.ts'

const SIZE = { bytes: 1_000, frames: 2, cost: 3_000 }
let added: NewJob[]
let job: OpenJob

beforeEach(() => {
  vi.useFakeTimers()
  added = []
  job = new OpenJob(
    async one => void added.push(one),
    { frames: 100, cost: 100_000 },
    () => Date.now(),
  )
})

afterEach(() => vi.useRealTimers())

/** Creates a payload, and adds the job that goes with its transaction. */
function create(jobId: string, priority = 0): void {
  const next = { jobId, priority, data: { payloads: SIZE.frames, bytes: SIZE.bytes } }
  const due = job.takeDue(next)
  if (due !== undefined) added.push(due)
  job.created(next, SIZE, due === next)
}

const joinable = (priority = 0) => job.joinable(SIZE, priority)

it('adds the first job with its payload and the next one ten milliseconds later, with the requests that have joined', () => {
  create('a')
  expect(added.map(({ jobId }) => jobId)).toEqual(['a'])
  create('b')
  job.joined(SIZE)
  vi.advanceTimersByTime(9)
  expect(added).toHaveLength(1)
  vi.advanceTimersByTime(1)
  expect(added[1]).toEqual({ jobId: 'b', priority: 0, data: { payloads: 4, bytes: 2_000 } })
})

it('adds the job before with the payload of the next one', () => {
  for (const jobId of ['a', 'b', 'c']) create(jobId)
  expect(added.map(({ jobId }) => jobId)).toEqual(['a', 'b'])
})

it('lets commits join a job until it is full', () => {
  create('a')
  expect(joinable()).toBe('a')
  expect(job.joinable({ ...SIZE, bytes: OPEN_PAYLOAD_BYTES - 1_000 }, 0)).toBe('a')
  expect(job.joinable({ ...SIZE, bytes: OPEN_PAYLOAD_BYTES - 999 }, 0)).toBeUndefined()
  expect(job.joinable({ ...SIZE, frames: 99 }, 0)).toBeUndefined()
  expect(job.joinable({ ...SIZE, cost: 97_001 }, 0)).toBeUndefined()
})

it('lets no commit join a job that was added a tenth of a second before, or soon after another was refused', () => {
  create('a')
  vi.advanceTimersByTime(99)
  expect(joinable()).toBe('a')
  vi.advanceTimersByTime(1)
  expect(joinable()).toBeUndefined()

  create('b')
  job.refused()
  expect(joinable()).toBeUndefined()
  create('c')
  create('d')
  expect(joinable()).toBe('d') // not added yet
  vi.advanceTimersByTime(10)
  expect(joinable()).toBeUndefined()
})

it('lets commits try the next job at once, if some had joined the one that was refused', () => {
  create('a')
  job.joined(SIZE)
  job.refused()
  expect(joinable()).toBeUndefined()
  vi.advanceTimersByTime(10)
  create('b')
  expect(joinable()).toBe('b') // added with its payload
  job.refused()
  vi.advanceTimersByTime(10)
  create('c')
  expect(joinable()).toBeUndefined()
})

it('lets a bulk commit join neither a job that goes later nor one that goes much earlier', () => {
  create('a', 1_000)
  expect(joinable(999)).toBeUndefined()
  expect(joinable(1_000)).toBe('a')
  expect(joinable(1_002)).toBe('a')
  expect(joinable(1_003)).toBeUndefined()
})

it('forgets a job whose state is unknown, and still adds it', async () => {
  create('a')
  create('b')
  job.close()
  expect(joinable()).toBeUndefined()
  await job.drain()
  expect(added.map(({ jobId }) => jobId)).toEqual(['a', 'b'])
})
