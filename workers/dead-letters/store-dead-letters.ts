import { type DeadLetter, deadLetterSchema, type StoredLetter } from '../../schemas/queues/dead-letters.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import type { Budget } from '../../shared/concurrency/budget.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { deadLetterKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { encodeLetters, LETTER_CONTENT_TYPE, type LetterRange } from '../../shared/queue/letters/letter-object.ts'
import { type PayloadFrame, withJsonBody } from '../../shared/queue/payload-frame.ts'
import { errorFields, PermanentError } from '../../shared/runtime/errors.ts'
import { frameMoves } from '../queue/moves.ts'
import type { TakenJob } from '../queue/pool.ts'
import { type JobDeps, processJob } from '../queue/process-frames.ts'
import { sessionOf } from '../queue/settled-letter.ts'

/** Objects of one job that are written at the same time. A job has one object for each surface and day. */
const CONCURRENT_PUTS = 16

/** Queues with JSON bodies of the service that name a session. */
const SESSION_IN_BODY: ReadonlySet<QueueName> = new Set(['sessions', 'replay-chunks'])

/** Dependencies of storing dead letters. */
export interface StoreDeadLettersDeps extends JobDeps {
  readonly objects: Pick<ObjectStore, 'put'>
  /** Payload bytes that the pool may hold at the same time. */
  readonly memory: Budget
}

/** A dead letter of a job, as it was moved and as it reads. */
interface Letter {
  readonly frame: PayloadFrame
  readonly letter: DeadLetter
}

/**
 * Writes the dead letters of a job as objects, one for each surface and day, then finishes the job in one step that moves
 * their index rows to the queue `dead-letter-index`. A failed write is repeated by itself. A worker that takes up the job
 * after a crash writes the same bytes under the same keys.
 */
export async function storeDeadLetters(deps: StoreDeadLettersDeps, job: TakenJob): Promise<void> {
  const store = () =>
    processJob(deps, job, async (frames, retry) => {
      const groups = groupLetters(job.jobId, frames)
      const rows: PayloadFrame[][] = new Array(groups.length)
      await forEachConcurrently(groups, { concurrency: CONCURRENT_PUTS, stopOnFailure: true }, async (letters, i) => {
        const stored = await storeGroup({ ...deps, retry }, job.jobId, letters)
        rows[i] = stored.filter(({ letter }) => letter.queue !== 'dead-letter-index').map(({ row }) => row)
      })
      return { result: undefined, moves: frameMoves('dead-letter-index', `letters-${job.jobId}`, rows.flat()) }
    })
  await deps.memory.run(job.payloadBytes, store, { lane: job.lane })
}

/** Groups letters by what their object key derives from, in the order of the first letter of each group. */
function groupLetters(jobId: string, frames: readonly PayloadFrame[]): Letter[][] {
  const groups = new Map<string, Letter[]>()
  for (const [index, frame] of frames.entries()) {
    const letter = readLetter(jobId, index, frame)
    const key = deadLetterKey({ ...frame, queue: letter.queue, jobId })
    const group = groups.get(key) ?? []
    groups.set(key, group)
    group.push({ frame, letter })
  }
  return [...groups.values()]
}

/** Reads the attributes of a letter. A letter of another version is kept too, since its bytes may be all that is left. */
function readLetter(jobId: string, index: number, frame: PayloadFrame): DeadLetter {
  const read = deadLetterSchema.safeParse(parseJson(frame.attributes))
  if (read.success) return read.data
  return {
    queue: 'dead-letters',
    reason: 'invalid_request: the attributes of the letter are unknown',
    refusedAtMs: frame.receivedAtMs,
    ...{ storedTables: [], rejected: [], storedRecords: 0 },
    ...{ jobId, index, attributes: frame.attributes },
  }
}

interface IndexedLetter extends Letter {
  readonly row: PayloadFrame
}

type StoreGroupDeps = Pick<StoreDeadLettersDeps, 'objects' | 'logger'> & { readonly retry: Retry }

/**
 * Writes the letters of a group as one object. If the store refuses the object permanently, each letter becomes an object of
 * its own, so that one letter cannot keep the others. The index then records which letter the store refuses in any form.
 */
async function storeGroup(deps: StoreGroupDeps, jobId: string, letters: readonly Letter[]): Promise<IndexedLetter[]> {
  const [first] = letters
  if (first === undefined) return []
  const objectKey = deadLetterKey({ ...first.frame, queue: first.letter.queue, jobId })
  const ranges = await put(deps, objectKey, letters)
  if (ranges) return letters.map((letter, i) => index(letter, objectKey, ranges[i]))
  const indexed: IndexedLetter[] = []
  for (const [i, letter] of letters.entries()) {
    const ownKey = `${objectKey}.${i}`
    const own = await put(deps, ownKey, [letter])
    indexed.push(own ? index(letter, ownKey, own[0]) : index(letter, '', undefined))
  }
  return indexed
}

/** Writes an object, until it is stored. Returns the ranges of its letters, or undefined if the store refuses it permanently. */
async function put(
  { objects, retry, logger }: StoreGroupDeps,
  key: string,
  letters: readonly Letter[],
): Promise<readonly LetterRange[] | undefined> {
  const { body, metadata, ranges } = encodeLetters(letters.map(({ frame }) => frame))
  try {
    await retry('store dead letters', () => objects.put(key, body, { contentType: LETTER_CONTENT_TYPE, metadata }))
    return ranges
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error
    const fields = { key, letters: letters.length, bytes: body.length, ...errorFields(error) }
    logger.error(fields, 'the object store refuses dead letters')
    return undefined
  }
}

/** Returns the letter with the frame from which its row in `dead_letters` is made. */
function index({ frame, letter }: Letter, objectKey: string, range: LetterRange | undefined): IndexedLetter {
  const { attributes, ...rest } = letter
  const stored: StoredLetter = {
    ...rest,
    attempt: 0,
    replayedAtMs: 0,
    outcome: 'dead',
    objectKey,
    offset: range?.offset ?? 0,
    length: range?.length ?? 0,
    bodyBytes: frame.body.length,
    sessionId: sessionOf(SESSION_IN_BODY.has(letter.queue) ? frame.body.toString() : attributes),
  }
  return { frame, letter, row: withJsonBody(frame, stored) }
}
