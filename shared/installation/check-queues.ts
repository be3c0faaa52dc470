import type { Installation, QueueLoss, QueueMark } from '../../schemas/records/installation.ts'
import { changeInstallation } from '../directory/installation-record.ts'
import { upkeepKeys } from '../directory/record.ts'
import { readQueueMarks, writeQueueMark } from '../queue/registry/queue-marks.ts'
import { readOldestWatermarks } from '../queue/watermark.ts'
import { type BothRedis, markAfterLoss, randomId, recordLoss } from './queue-losses.ts'

/** Last check that found the data of the queues. Unix ms by the clock of their Redis. */
type LastSeen = Pick<QueueLoss, 'seenAtMs' | 'settledBeforeMs'>

/** State that a process keeps from one check to the next. */
export interface Known {
  /** Undefined before the first check. */
  readonly installation: Installation | undefined
  readonly marks: ReadonlyMap<number, QueueMark>
  readonly seen: LastSeen | undefined
}

/** The queues as one check reads them. */
export interface QueuesRead extends LastSeen {
  readonly numbers: readonly number[]
  readonly marks: ReadonlyMap<number, QueueMark>
}

/** Reads the time first: what was settled before it, and was marked then, was there. */
export async function readQueues({ queues }: Pick<BothRedis, 'queues'>, known: Known): Promise<QueuesRead> {
  const { readAtMs, settledBeforeMs } = await readOldestWatermarks(queues, { beyondLosses: true })
  const { numbers: registered } = await queues.read()
  const numbers = [...new Set([...registered, ...Object.keys(known.installation?.epochs ?? {}).map(Number)])]
  return { seenAtMs: readAtMs, settledBeforeMs, numbers, marks: await readQueueMarks(queues, numbers) }
}

/** Queues that are compared with what this process, ClickHouse and the directory know of their epochs. */
interface QueuesCompared {
  readonly known: Known
  readonly installation: Installation
  readonly queues: QueuesRead
  /** Epochs that ClickHouse knows. */
  readonly epochs: Installation['epochs']
}

/** The marks of all queues afterwards. `seen` is set if none had lost its data. */
interface CheckedQueues {
  readonly installation: Installation
  readonly marks: ReadonlyMap<number, QueueMark>
  readonly seen?: LastSeen
}

/**
 * Marks the queues that are new, and records those that have lost their data: their mark is missing or another one, although this
 * process, ClickHouse or the directory knows their epoch.
 */
export async function checkQueues(stores: BothRedis, compared: QueuesCompared): Promise<CheckedQueues> {
  const { queues } = compared
  let { installation } = compared
  const marks = new Map(queues.marks)
  const numbers = [...new Set([...queues.numbers, ...Object.keys(installation.epochs).map(Number)])]
  const suspects = numbers.filter(number => conditionOf(compared, number, marks.get(number)) !== 'known')
  // Read again, because another process may have written a mark after it was read, and noted its epoch before that was read.
  for (const [number, mark] of await readQueueMarks(stores.queues, suspects)) marks.set(number, mark)
  const lost: number[] = []
  for (const number of suspects) {
    const condition = conditionOf(compared, number, marks.get(number))
    if (condition === 'lost') lost.push(number)
    if (condition === 'known' || condition === 'lost') continue
    const { id } = installation
    const mark: QueueMark =
      condition === 'new' ? { version: 1, installation: id, epoch: randomId() } : markAfterLoss(installation, number)
    marks.set(number, (await writeQueueMark(stores.queues, number, mark)) ?? mark)
  }
  if (lost.length > 0) {
    const found = { seen: await lastSeen(stores, compared), foundAtMs: queues.seenAtMs }
    const recorded = await recordLoss(stores, installation, lost, found)
    for (const [number, mark] of recorded.marks) marks.set(number, mark)
    installation = recorded.installation
  }
  installation = await noteEpochs(stores, installation, marks)
  if (lost.length > 0) return { installation, marks }
  return { installation, marks, seen: { seenAtMs: queues.seenAtMs, settledBeforeMs: queues.settledBeforeMs } }
}

/** `recorded`: another process has recorded the loss, and not marked the queues yet. */
type QueueCondition = 'known' | 'new' | 'recorded' | 'lost'

function conditionOf(
  { known, installation, epochs }: QueuesCompared,
  number: number,
  mark: QueueMark | undefined,
): QueueCondition {
  const noted = installation.epochs[number]
  const witnessed = known.marks.get(number)?.epoch ?? epochs[number]
  if (mark === undefined) {
    if (witnessed === undefined) return noted === undefined ? 'new' : 'lost'
    return noted === undefined || noted === witnessed ? 'lost' : 'recorded'
  }
  // A directory that was restored from an older backup may know an earlier epoch.
  return witnessed === undefined || witnessed === mark.epoch || noted === mark.epoch ? 'known' : 'lost'
}

/** Notes the epochs in the directory: of new queues, and of all after the directory was restored from an older backup. */
async function noteEpochs(
  { directory }: BothRedis,
  installation: Installation,
  marks: ReadonlyMap<number, QueueMark>,
): Promise<Installation> {
  const epochs = Object.fromEntries([...marks].map(([number, { epoch }]) => [number, epoch]))
  const noted = { ...installation.epochs, ...epochs }
  if (isSame(noted, installation.epochs)) return installation
  // Read again, so that an epoch which another process has begun meanwhile stays.
  const changed = await changeInstallation(directory, current => {
    if (current === undefined) return undefined
    const own = Object.entries(epochs).filter(([number]) => current.epochs[number] === installation.epochs[number])
    return { ...current, epochs: { ...current.epochs, ...Object.fromEntries(own) } }
  })
  return changed ?? installation
}

/** Returns the latest check of any process that has found the data. */
async function lastSeen({ directory }: BothRedis, { known, installation, queues }: QueuesCompared): Promise<LastSeen> {
  const text = await directory.get(upkeepKeys.queuesSeen)
  const noted = text === null ? undefined : (JSON.parse(text) as LastSeen)
  const [latest] = [known.seen, noted].filter(seen => seen !== undefined).sort((a, b) => b.seenAtMs - a.seenAtMs)
  if (latest !== undefined) return latest
  // A directory that was restored, and a process that has just begun: anything since then may be lost.
  const { createdAtMs } = installation
  const settled = Object.keys(queues.settledBeforeMs).map(kind => [kind, createdAtMs] as const)
  return { seenAtMs: createdAtMs, settledBeforeMs: Object.fromEntries(settled) }
}

/** Returns whether two records have the same epochs. */
export function isSame(a: Installation['epochs'], b: Installation['epochs']): boolean {
  return Object.keys({ ...a, ...b }).every(number => a[number] === b[number])
}
