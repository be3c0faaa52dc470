import type { Redis } from 'ioredis'
import { ADMITTED_QUEUES, type AdmittedQueue, QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import { shareMember } from './queue.ts'
import type { Queues, RedisQueue } from './queues.ts'
import { heldBackBy, readQueueMarks } from './registry/queue-marks.ts'

/**
 * Queues in the order in which a request passes through them. A request is in one of them from its acceptance until it is
 * settled, because one script takes it out of one queue and puts what derives from it into the next. Reading them in this
 * order misses none that moves meanwhile: it is ahead of the reader, or the reader has seen it. Letters of the index of the
 * dead letters return to the dead letters once, so these are read twice.
 */
const IN_ORDER_OF_PASSAGE: readonly QueueName[] = [
  ...ADMITTED_QUEUES,
  'exceptions',
  'span-stats',
  'replay-chunks',
  'symbolication',
  'receipts',
  'dead-letters',
  'dead-letter-index',
  'dead-letters',
]

const LETTERS = ['dead-letters', 'dead-letter-index'] as const

/** Queues that a request of each kind passes through until it is settled and its receipt is final. */
export const QUEUES_OF_SIGNAL: Readonly<Record<AdmittedQueue, readonly QueueName[]>> = {
  traces: ['traces', 'exceptions', ...LETTERS],
  logs: ['logs', 'exceptions', ...LETTERS],
  metrics: ['metrics', ...LETTERS],
  sessions: ['sessions', ...LETTERS],
  replay: ['replay', 'replay-chunks', 'receipts', ...LETTERS],
  'source-maps': ['source-maps', 'receipts', ...LETTERS],
  completions: ['completions', 'receipts', ...LETTERS],
  'build-reports': ['build-reports', ...LETTERS],
}

/** A surface whose watermarks are read. */
export interface WatermarkSurface {
  readonly workspaceId: string
  readonly surfaceId: string
}

/** What is settled of one surface. All times are Unix ms by the clock of Redis. */
export interface SurfaceWatermarks {
  /** Everything that was accepted before this time is settled, by kind of request. */
  readonly settledBeforeMs: Readonly<Record<AdmittedQueue, number>>
  /** The latest time before which no unfinished request of the surface was accepted, by queue. */
  readonly unfinishedSinceMs: Readonly<Record<QueueName, number>>
  /** Estimated work of the unfinished requests of the surface in decoded bytes (request-work.ts), by queue. */
  readonly unfinishedWork: Readonly<Record<QueueName, number>>
}

/** Watermarks, and the time of Redis at which they were read. No watermark is later. */
export interface Watermarks {
  readonly readAtMs: number
  /** In the order of the surfaces that were asked about. */
  readonly surfaces: readonly SurfaceWatermarks[]
}

/** Bounds of a queue: the acceptance of its oldest request, and those of each surface with its work. */
interface QueueBounds {
  readonly queue: RedisQueue
  readonly oldestMs: number
  readonly surfaces: readonly number[]
  readonly work: readonly number[]
}

/** How watermarks treat a loss of the data of the queues. */
interface WatermarkOptions {
  /** Whether lost requests count as settled, because they will never be stored. Else they hold watermarks back. */
  readonly beyondLosses?: boolean
}

/** Surfaces of which the watermarks are read in any case. Those of more are the same while the queues have nothing to do. */
const FEW_SURFACES = 16

/**
 * Reads what is settled of each surface (docs/api/receipts.md#watermarks, docs/decisions/022-watermarks.md for the proof). Costs
 * O(log n) for each queue and surface.
 *
 * The time is read first. A surface without unfinished cost in a queue has nothing there that was accepted before. Any other
 * has nothing there that was accepted before the oldest payload of the queue, nor before the surface had nothing last.
 */
export async function readWatermarks(
  queues: Queues,
  surfaces: readonly WatermarkSurface[],
  options: WatermarkOptions = {},
): Promise<Watermarks> {
  const idle = surfaces.length > FEW_SURFACES ? await readIdle(queues, options) : undefined
  if (idle !== undefined) {
    const same = surfaceMarks(idle, 0)
    return { readAtMs: idle.readAtMs, surfaces: surfaces.map(() => same) }
  }
  const all = await readAllBounds(queues, surfaces.map(shareMember), options)
  return { readAtMs: all.readAtMs, surfaces: surfaces.map((_, index) => surfaceMarks(all, index)) }
}

/** Returns the bounds of queues that have nothing to do, in which no surface has anything. Undefined if one has. */
async function readIdle(queues: Queues, options: WatermarkOptions): Promise<AllBounds | undefined> {
  const all = await readAllBounds(queues, [], options)
  return all.reads.every(({ oldestMs }) => oldestMs === Number.POSITIVE_INFINITY) ? all : undefined
}

function surfaceMarks({ readAtMs, reads, held }: AllBounds, index: number): SurfaceWatermarks {
  const unfinishedSinceMs = Object.fromEntries(QUEUES.map(queue => [queue, readAtMs])) as Record<QueueName, number>
  for (const { queue, surfaces: bounds } of reads) {
    unfinishedSinceMs[queue.name] = Math.min(unfinishedSinceMs[queue.name], bounds[index] ?? readAtMs)
  }
  const unfinishedWork = Object.fromEntries(QUEUES.map(queue => [queue, 0])) as Record<QueueName, number>
  for (const { queue, work } of new Map(reads.map(read => [read.queue, read])).values()) {
    unfinishedWork[queue.name] += work[index] ?? 0
  }
  const settled = ADMITTED_QUEUES.map(kind => [
    kind,
    Math.min(held[kind] ?? readAtMs, ...QUEUES_OF_SIGNAL[kind].map(queue => unfinishedSinceMs[queue])),
  ])
  return {
    unfinishedSinceMs,
    unfinishedWork,
    settledBeforeMs: Object.fromEntries(settled) as Record<AdmittedQueue, number>,
  }
}

/**
 * Returns a time in Unix ms, by the clock of Redis: everything that the workspace had accepted before it is settled, whatever
 * its surface, also one that is deleted. Work of other workspaces may hold it back, but not for ever. Lost requests will never be
 * stored, so they do not hold it back. Compare it with `latestTimeMs`, never with the clock of a process.
 */
export async function settledBeforeMs(queues: Queues, _workspaceId: string): Promise<number> {
  const { readAtMs, reads } = await readAllBounds(queues, [], { beyondLosses: true })
  return Math.min(readAtMs, ...reads.map(({ oldestMs }) => oldestMs))
}

/** What is settled of all surfaces together, by kind of request, and the time of Redis at which it was read. Unix ms. */
export interface OldestWatermarks {
  readonly readAtMs: number
  readonly settledBeforeMs: Readonly<Record<AdmittedQueue, number>>
}

/** Returns the time before which everything that any surface had accepted is settled, by kind of request. */
export async function readOldestWatermarks(queues: Queues, options: WatermarkOptions = {}): Promise<OldestWatermarks> {
  const { readAtMs, reads, held } = await readAllBounds(queues, [], options)
  const settled = ADMITTED_QUEUES.map(kind => {
    const own = reads.filter(({ queue }) => QUEUES_OF_SIGNAL[kind].includes(queue.name))
    return [kind, Math.min(held[kind] ?? readAtMs, readAtMs, ...own.map(({ oldestMs }) => oldestMs))]
  })
  return { readAtMs, settledBeforeMs: Object.fromEntries(settled) as Record<AdmittedQueue, number> }
}

/** Returns the latest time of the servers of the queues in Unix ms. They have accepted nothing after it until then. */
export async function latestTimeMs(queues: Queues): Promise<number> {
  const { readAtMs, all } = await queues.read()
  const servers = new Set(all.map(({ redis }) => redis))
  return Math.max(readAtMs, ...(await Promise.all([...servers].map(redisTimeMs))))
}

/** Returns the time of Redis in Unix ms, rounded down. */
export async function redisTimeMs(redis: Redis): Promise<number> {
  const [seconds = 0, microseconds = 0] = (await redis.time()).map(Number)
  return seconds * 1_000 + Math.floor(microseconds / 1_000)
}

interface AllBounds {
  readonly readAtMs: number
  readonly reads: readonly QueueBounds[]
  /** By kind of request: the time that no watermark passes, because of a loss (Unix ms). */
  readonly held: Readonly<Record<string, number>>
}

/**
 * Reads the bounds of all queues, and a time before that: the earliest of the servers. A payload that moves on
 * stays on its server, whose connection keeps the order of the commands.
 */
async function readAllBounds(
  queues: Queues,
  members: readonly string[],
  { beyondLosses = false }: WatermarkOptions,
): Promise<AllBounds> {
  const { readAtMs, of, numbers } = await queues.read()
  const passed = IN_ORDER_OF_PASSAGE.flatMap(of)
  const others = new Set(passed.map(({ redis }) => redis))
  others.delete(queues.common)
  const [times, reads, marks] = await Promise.all([
    Promise.all([...others].map(redisTimeMs)),
    Promise.all(passed.map(queue => readBounds(queue, members))),
    beyondLosses ? undefined : readQueueMarks(queues, numbers),
  ])
  const held = heldBackBy(marks?.values() ?? [], readAtMs)
  return { readAtMs: Math.min(readAtMs, ...times), reads, held }
}

/** Reads the bounds of a queue. The commands are sent before it returns, so those of several queues keep their order. */
async function readBounds(queue: RedisQueue, members: readonly string[]): Promise<QueueBounds> {
  const { redis, keys } = queue
  const { pending, shares, busy } = keys
  const some = members.length > 0
  const [oldest, costs, busySince] = await Promise.all([
    redis.zrange(pending, 0, '0', 'WITHSCORES'),
    some ? redis.zmscore(shares, ...members) : [],
    some ? redis.hmget(busy, ...members) : [],
  ])
  const oldestMs = Number(oldest[1] ?? Number.POSITIVE_INFINITY)
  return {
    queue,
    oldestMs,
    work: costs.map(cost => Math.max(0, Number(cost ?? 0))),
    surfaces: members.map((_, i) => {
      if (costs[i] == null) return Number.POSITIVE_INFINITY
      return Math.max(oldestMs, Number(busySince[i] ?? 0))
    }),
  }
}
