import { pino } from 'pino'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { LetterFilter, LetterKey } from '../../clickhouse/queries/letters/letter.ts'
import { selectLetters } from '../../clickhouse/queries/letters/select-letters.ts'
import { LetterClaims } from '../../letters/letter-claims.ts'
import { ReplayJobs } from '../../letters/replay-jobs.ts'
import { type ReplayLettersDeps, replayLetters } from '../../letters/replay-letters.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { newCommit } from '../../shared/ids/receipt.ts'
import { createObjectStore } from '../../shared/object-store/object-store.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { connectConsumer } from '../../shared/queue/redis.ts'
import { LetterMoves, type RefusedFrame } from '../../workers/queue/letter-moves.ts'
import { frameMoves } from '../../workers/queue/moves.ts'
import { type Move, RedisPayloadStore } from '../../workers/queue/payloads/payload-store.ts'
import { addMovedJobs } from '../../workers/queue/process-frames.ts'
import { createJobAdder } from '../../workers/queue/sweep.ts'
import { onOneServer, queueOn } from './queue-on.ts'
import type { sharedServices } from './services/shared-services.ts'
import { until } from './until.ts'

/** Surface of a test. */
interface TestSurface {
  readonly workspaceId: string
  readonly surfaceId: string
}

/** Connects what tests of dead letters use: queues into which requests are put, and what replays and purges letters. */
export function connectLetters(
  services: ReturnType<typeof sharedServices>,
  redisUrl: string,
  clickhouse: ClickHouseClient,
) {
  const redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
  const adder = createJobAdder(queueOn(redis))
  const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
  const jobs = new ReplayJobs(onOneServer(redis))
  const deps = {
    clickhouse,
    objects,
    claims: new LetterClaims(onOneServer(redis), 30),
    jobs,
    now: Date.now,
  } satisfies ReplayLettersDeps
  const signal = () => AbortSignal.timeout(30_000)

  async function backlog(queue: QueueName): Promise<number> {
    const flow = await redis.hgetall(queueKeys(queue).flow)
    return Number(flow.acceptedBytes ?? 0) - Number(flow.doneBytes ?? 0)
  }

  async function move(moves: readonly Move[]): Promise<void> {
    await redis.set(queueKeys('traces').payload('finished'), 'x')
    await new RedisPayloadStore(queueOn(redis, 'traces')).finishJob(
      'finished',
      { frames: 0, bytes: 0, shares: new Map() },
      moves,
    )
    await addMovedJobs(adder.add, moves)
  }

  return {
    redis,
    objects,
    deps,
    addJobs: adder.add,
    /** Puts a job with these requests into a queue, as a worker moves it there. */
    enqueue: (queue: QueueName, jobId: string, frames: readonly PayloadFrame[]) =>
      move(frameMoves(queue, jobId, frames)),
    /** Moves requests to the dead letters, as a worker does whose decoder fails on them or on some of their records. */
    async refuse(
      queue: QueueName,
      jobId: string,
      frames: readonly PayloadFrame[],
      stored: Pick<RefusedFrame, 'rejected' | 'storedRecords'> = {},
    ): Promise<void> {
      const letters = new LetterMoves(queue, jobId)
      for (const [index, frame] of frames.entries()) {
        letters.add({ jobId, index, frame, reason: { label: 'decoder_fault', detail: 'fixed since' }, ...stored })
      }
      await move(letters.moves())
    },
    /** Waits until nothing is left in these queues. */
    untilDone: (...queues: readonly QueueName[]) =>
      until('the queues are empty', async () => (await Promise.all(queues.map(backlog))).every(bytes => bytes === 0), {
        deadlineMs: 60_000,
      }),
    list: (workspaceId: string, filter: LetterFilter = {}, limit = 1_000) =>
      selectLetters(clickhouse, { workspaceId, filter, order: 'oldest', limit }, signal()),
    /** Waits until a payload is in this queue. */
    untilQueued: (queue: QueueName) => until('a payload is queued', async () => (await backlog(queue)) > 0),
    /** Replays these letters and returns how many were put into their queues. */
    async replay(workspaceId: string, keys: readonly LetterKey[]): Promise<number> {
      return (await replayLetters(deps, workspaceId, { keys }, { limit: 500 }, signal())).replayed
    },
    /** Replays all letters of a workspace, step by step, and waits where the queues have no room. */
    async replayAll(workspaceId: string, filter: LetterFilter = {}, changes: Partial<ReplayLettersDeps> = {}) {
      let after: Parameters<typeof replayLetters>[3]['after']
      let replayed = 0
      for (;;) {
        const result = await replayLetters(
          { ...deps, ...changes },
          workspaceId,
          { filter },
          { after, limit: 500 },
          signal(),
        )
        replayed += result.replayed
        if (result.next === undefined) return replayed
        after = result.next.after
        if (result.isBusy) await until('the queue has room', async () => (await backlog('traces')) < 16e6)
      }
    },
    async close(): Promise<void> {
      await Promise.all([adder.close(), jobs.close()])
      objects.close()
      redis.disconnect()
    },
  }
}

/** Returns an export of traces of a surface, with a receipt. */
export function traceFrame(surface: TestSurface, body: Buffer, changes: Partial<PayloadFrame> = {}): PayloadFrame {
  const { receivedAtMs = Date.now() } = changes
  const receipt = Buffer.concat([newCommit('traces', receivedAtMs), Buffer.alloc(4)]).toString('latin1')
  return {
    ...surface,
    receivedAtMs,
    contentType: 'application/json',
    contentEncoding: 'identity',
    attributes: '',
    receipt,
    body,
    ...changes,
  }
}
