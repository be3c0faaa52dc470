import type { IngestLogEntry } from '../../clickhouse/tables/ingest-log-table.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { EXCEPTIONS_NOT_STORED } from '../../shared/runtime/reason.ts'
import { LetterMoves, type RefusedFrame } from '../queue/letter-moves.ts'
import type { LetterQuota } from '../queue/letter-quota.ts'
import { frameMoves } from '../queue/moves.ts'
import type { Move } from '../queue/payloads/payload-store.ts'
import { type SettledReplay, settledLetter } from '../queue/settled-letter.ts'
import { isRefused, note } from './log-entries.ts'
import type { PassedOnRequest } from './passed-on.ts'

/** A request of a job that becomes a dead letter, and the log entry in which it is counted. */
interface LoggedRefusal {
  readonly entry: IngestLogEntry
  readonly request: RefusedFrame
}

/** Log entries, refused and replayed requests of a job, found while it is decoded. */
export interface JobNotes {
  readonly entries: Map<string, IngestLogEntry>
  readonly refusals: LoggedRefusal[]
  readonly replays: SettledReplay[]
  readonly passedOn: PassedOnRequest[]
}

/** The queue of the refused requests, and what bounds the dead letters of a surface. Without a quota, all are kept. */
interface LettersSource {
  readonly queue: QueueName
  readonly letterQuota?: LetterQuota | undefined
}

/** The dead letters of a batch, and the index rows of the letters that were replayed in it. */
export class BatchLetters {
  readonly #source: LettersSource
  readonly #batchId: string
  readonly #letters: LetterMoves
  readonly #settled: PayloadFrame[] = []
  #noteBytes = 0

  constructor(source: LettersSource, batchId: string) {
    this.#source = source
    this.#batchId = batchId
    this.#letters = new LetterMoves(source.queue, batchId)
  }

  /** Bytes of the letters, and of what their receipts report. */
  get bytes(): number {
    return this.#letters.bytes + this.#noteBytes
  }

  /**
   * Keeps the refused requests of a job as dead letters, as far as their surfaces may have more of them on that day. Returns the
   * number of requests of which nothing is stored.
   */
  async keep(jobId: string, { refusals, replays }: JobNotes): Promise<number> {
    const { queue, letterQuota } = this.#source
    const known = new Map(replays.map(({ frame, letter }) => [frame, letter.objectKey]))
    const requests = refusals.map(({ request }) => request).filter(({ frame }) => !known.has(frame))
    const isKept = requests.length === 0 ? [] : await letterQuota?.admit(queue, jobId, requests)
    const kept = new Map(requests.map((request, i) => [request, isKept?.[i] ?? true]))
    let refused = 0
    for (const { entry, request } of refusals) {
      const { frame } = request
      // A copy of the body, because the memory of the payload is used again.
      const keep = () => this.#letters.add({ ...request, frame: { ...frame, body: Buffer.from(frame.body) } })
      const objectKey = known.get(frame) ?? (kept.get(request) ? keep() : '')
      if (isRefused(request)) refused++
      const label = queue === 'exceptions' ? EXCEPTIONS_NOT_STORED : request.reason.label
      this.#noteBytes += note(entry, request, objectKey, label)
    }
    for (const replay of replays) {
      const row = settledLetter(replay, Date.now())
      this.#settled.push(row)
      this.#noteBytes += row.body.length + row.attributes.length
    }
    return refused
  }

  /** Returns the moves of all of them. */
  moves(): Move[] {
    return [...this.#letters.moves(), ...frameMoves('dead-letter-index', `replayed-${this.#batchId}`, this.#settled)]
  }
}
