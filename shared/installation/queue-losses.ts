import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Installation, QueueLoss, QueueMark } from '../../schemas/records/installation.ts'
import { changeInstallation, readInstallation } from '../directory/installation-record.ts'
import { base32 } from '../ids/base32.ts'
import type { Queues } from '../queue/queues.ts'
import { readQueueMark, writeQueueMark } from '../queue/registry/queue-marks.ts'
import { redisTimeMs } from '../queue/watermark.ts'
import { TransientError } from '../runtime/errors.ts'

/** Losses that the record of an installation keeps. */
const LOSSES_KEPT = 100

/** Returns random text of 130 bits. */
export function randomId(): string {
  return base32(randomBytes(17), 26)
}

/** Returns the record of an installation that has claimed nothing yet. */
export function newInstallation(id: string = randomId()): Installation {
  return { version: 1, id, createdAtMs: Date.now(), stores: [], epochs: {}, losses: [] }
}

/** Both Redis of an installation. */
export interface BothRedis {
  readonly directory: Redis
  readonly queues: Queues
}

/** Both are Unix ms by the clock of the Redis of the queues. */
type LastSeen = Pick<QueueLoss, 'seenAtMs' | 'settledBeforeMs'>

/**
 * Records that the queues of these numbers have lost their data, and gives them a new epoch: first in the directory, then in their
 * Redis, so that a process that dies in between hides no loss. Each of several processes that find the same loss may call it:
 * `before` is the record with which they found it, and the first one decides. Returns the record and the marks afterwards.
 */
export async function recordLoss(
  { directory, queues }: BothRedis,
  before: Installation,
  lost: readonly number[],
  { seen, foundAtMs }: { readonly seen: LastSeen; readonly foundAtMs: number },
): Promise<{ readonly installation: Installation; readonly marks: ReadonlyMap<number, QueueMark> }> {
  const installation = await changeInstallation(directory, current => {
    const own = lost.filter(number => current?.epochs[number] === before.epochs[number])
    if (current === undefined || own.length === 0) return undefined
    const epochs = { ...current.epochs, ...Object.fromEntries(own.map(number => [number, randomId()])) }
    const open = current.losses.filter(loss => isOpen(loss) && loss.queues.some(number => own.includes(number)))
    const others = current.losses.filter(loss => !open.includes(loss))
    const loss = mergedLoss([...open, { queues: own, ...seen, foundAtMs, acceptedAtMs: null }])
    return { ...current, epochs, losses: [...others, loss].slice(-LOSSES_KEPT) }
  })
  if (installation === undefined) throw new TransientError('the directory was emptied meanwhile')
  const marks = new Map<number, QueueMark>()
  for (const number of lost) {
    const mark = markAfterLoss(installation, number)
    const known = await readQueueMark(queues, number)
    const isCurrent = known?.epoch === mark.epoch
    marks.set(number, isCurrent ? known : ((await writeQueueMark(queues, number, mark, { replace: true })) ?? mark))
  }
  return { installation, marks }
}

/** Returns the mark that the queues of a number should have, with the latest loss of their data. */
export function markAfterLoss({ id, epochs, losses }: Installation, number: number): QueueMark {
  const last = losses.findLast(({ queues }) => queues.includes(number))
  const { queues: _, ...loss } = last ?? { queues: [] }
  const epoch = epochs[number]
  if (epoch === undefined) throw new RangeError(`the queues ${number} have no epoch`)
  return { version: 1, installation: id, epoch, ...(last && { loss: loss as QueueLoss }) }
}

/** Returns whether no operator has accepted a loss. */
export function isOpen({ acceptedAtMs }: QueueLoss): boolean {
  return acceptedAtMs === null
}

type RecordedLoss = Installation['losses'][number]

/** Joins losses that no operator has accepted: what was settled is what was before the first of them. */
function mergedLoss(losses: readonly RecordedLoss[]): RecordedLoss {
  return losses.reduce((first, next) => {
    const settled = Object.entries(next.settledBeforeMs).map(([kind, atMs]) => [
      kind,
      Math.min(atMs, first.settledBeforeMs[kind] ?? atMs),
    ])
    return {
      queues: [...new Set([...first.queues, ...next.queues])].sort((a, b) => a - b),
      settledBeforeMs: { ...first.settledBeforeMs, ...Object.fromEntries(settled) },
      seenAtMs: Math.min(first.seenAtMs, next.seenAtMs),
      foundAtMs: next.foundAtMs,
      acceptedAtMs: null,
    }
  })
}

/**
 * Accepts every loss of the queues, so that watermarks move on and the alert ends. Receipts and the audit still know it.
 * Returns the losses that are accepted by this call.
 */
export async function acceptLosses({ directory, queues }: BothRedis): Promise<readonly RecordedLoss[]> {
  const before = await readInstallation(directory)
  const acceptedAtMs = await redisTimeMs(queues.common)
  const after = await changeInstallation(directory, current =>
    current?.losses.some(isOpen)
      ? { ...current, losses: current.losses.map(loss => (isOpen(loss) ? { ...loss, acceptedAtMs } : loss)) }
      : undefined,
  )
  // Also those of a call before that was interrupted here.
  for (const number of Object.keys(after?.epochs ?? {}).map(Number)) {
    const mark = await readQueueMark(queues, number)
    if (mark?.loss === undefined || !isOpen(mark.loss)) continue
    await writeQueueMark(queues, number, { ...mark, loss: { ...mark.loss, acceptedAtMs } }, { replace: true })
  }
  return (before?.losses ?? []).filter(isOpen)
}
