import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { RedisClock } from '../../ingest/admission/redis-clock.ts'
import { ExpressTraffic } from '../../ingest/commit/express-traffic.ts'
import { GroupCommit, type GroupCommitOptions } from '../../ingest/commit/group-commit.ts'
import { createReceiptIssuer } from '../../ingest/commit/receipt-issuer.ts'
import type { IngestQueue } from '../../schemas/queues/names.ts'
import { MIB } from '../../schemas/units.ts'
import { BufferPool } from '../../shared/memory/buffer-pool.ts'
import { type ContentEncoding, frameCost, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { shareMember } from '../../shared/queue/queue.ts'
import { queueOn } from './queue-on.ts'

/** Opens the group commits of a queue in the express lane, as an edge on the same machine as its Redis. */
export function openExpressCommits(
  redis: Redis,
  options: Omit<GroupCommitOptions, 'priorityOf' | 'onCommit'> & Partial<GroupCommitOptions>,
  queue: IngestQueue = 'traces',
  memory: BufferPool = new BufferPool(8 * MIB),
  now: () => number = () => performance.now(),
  mayUse: () => boolean = () => true,
): GroupCommit {
  const clock = new RedisClock()
  clock.observe(Date.now())
  const receipts = createReceiptIssuer(() => Buffer.alloc(32))
  const logger = pino({ level: 'silent' })
  return new GroupCommit(
    {
      targets: { current: [{ queue: queueOn(redis, queue), redis, clock, mayUse }] },
      queue,
      lane: 'express',
      receipts,
      traffic: new ExpressTraffic(),
      memory,
      logger,
      minReplicas: 0,
      now,
    },
    { priorityOf: () => 0, onCommit: () => {}, ...options },
  )
}

/** Commits a request with this body. Resolves when Redis has it on disk. */
export async function commitBody(
  commits: GroupCommit,
  body: string | Buffer,
  contentEncoding: ContentEncoding = 'identity',
): Promise<void> {
  const surface = { workspaceId: 'ws_a', surfaceId: 'srf_a' }
  const frame = {
    ...surface,
    receivedAtMs: Date.now(),
    contentType: 'application/x-protobuf',
    contentEncoding,
    attributes: '',
    body: Buffer.from(body as string),
  } as const
  await commitFrame(commits, frame, 1)
}

/** Commits a frame. Resolves when Redis has it on disk. Throws at once if it cannot be enqueued. */
export function commitFrame(commits: GroupCommit, frame: PayloadFrame, cost = frameCost(frame)): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const share = { member: shareMember(frame), backlog: 0 }
  commits.enqueue(frame, { share, cost, confirmed: () => resolve(), failed: reject })
  return promise
}
