import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { QueueName } from '../../schemas/queues/names.ts'
import { DAY_S, HOUR_S } from '../../schemas/units.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { LetterMoves, type RefusedFrame } from './letter-moves.ts'
import type { Move } from './payloads/payload-store.ts'

/**
 * Bounds of the dead letters of one surface that arrived on one day. A workspace has four times as much
 * (docs/api/dead-letters.md#dead-letters).
 */
export interface LetterLimits {
  readonly maxBytes: number
  readonly maxLetters: number
}

/** Decides which refused requests are kept as dead letters. */
export interface LetterQuota {
  /**
   * Returns for each request of a job whether it is kept. The same requests of the same job always get the same decision,
   * so that a job that is processed again after a crash agrees with the receipts that are stored already.
   */
  admit(queue: QueueName, jobId: string, requests: readonly RefusedFrame[]): Promise<readonly boolean[]>
}

/** Reports how many letters of a job are kept and how many are discarded. */
type OnLetters = (queue: QueueName, kept: number, discarded: number) => void

/**
 * How long a decision can be repeated. After that, a job that was never finished is counted a second time, which matters
 * only if its receipts were stored before and its surface has reached a bound in between.
 */
const DECISION_LIFETIME_S = HOUR_S
/** The counters of a day are used by requests that waited for at most this long. Later ones begin with zero. */
const COUNTER_LIFETIME_S = 3 * DAY_S

/**
 * A workspace may have as many dead letters as this many surfaces. Only letters within the bound of their surface count, so
 * that a flood of one surface leaves room for the others.
 */
const SURFACES_PER_WORKSPACE = 4

const COUNT_LETTERS = queueScript('letters/count-letters')

/** Bytes and letters of one surface or workspace and day. */
interface Usage {
  bytes: number
  letters: number
}

/** The quota that all workers share. Its counters are in Redis, with the hash tag of the queue `dead-letters`. */
export class RedisLetterQuota implements LetterQuota {
  readonly #redis: Redis
  readonly #limits: LetterLimits
  readonly #onLetters: OnLetters | undefined

  constructor(redis: Redis, limits: LetterLimits, onLetters?: OnLetters) {
    this.#redis = redis
    this.#limits = limits
    this.#onLetters = onLetters
  }

  async admit(queue: QueueName, jobId: string, requests: readonly RefusedFrame[]): Promise<readonly boolean[]> {
    // An operator has decided to keep these.
    if (requests.every(({ reason }) => reason.label === 'set_aside')) {
      this.#onLetters?.(queue, requests.length, 0)
      return requests.map(() => true)
    }
    const asked = new Map<string, Usage & { readonly workspace: string }>()
    for (const { frame } of requests) {
      const counter = counterOf(frame)
      const usage = asked.get(counter) ?? { bytes: 0, letters: 0, workspace: workspaceCounterOf(frame) }
      asked.set(counter, add(usage, frame))
    }
    const used = await this.#count(decisionOf(queue, jobId, requests), asked)
    const decisions = requests.map(({ frame }) => {
      const surface = used.get(counterOf(frame)) as Usage
      const workspace = used.get(workspaceCounterOf(frame)) as Usage
      const fitsSurface = this.#fits(surface, frame, 1)
      add(surface, frame)
      if (!fitsSurface) return false
      const fits = this.#fits(workspace, frame, SURFACES_PER_WORKSPACE)
      add(workspace, frame)
      return fits
    })
    const kept = decisions.filter(Boolean).length
    this.#onLetters?.(queue, kept, decisions.length - kept)
    return decisions
  }

  /** Reports whether a letter is within `times` the limits. */
  #fits({ bytes, letters }: Usage, frame: PayloadFrame, times: number): boolean {
    const { maxBytes, maxLetters } = this.#limits
    return bytes + letterBytes(frame) <= times * maxBytes && letters < times * maxLetters
  }

  /** Adds the usage to the counters, once for each decision. Returns the counters before it. */
  async #count(
    decision: string,
    asked: ReadonlyMap<string, Usage & { readonly workspace: string }>,
  ): Promise<Map<string, Usage>> {
    const { maxBytes, maxLetters } = this.#limits
    const { quota } = queueKeys('dead-letters')
    const workspaces = [...new Set([...asked.values()].map(({ workspace }) => workspace))]
    const counters = [...asked.keys(), ...workspaces]
    const keys = [quota(decision), ...counters.map(counter => quota(counter))]
    const args = [DECISION_LIFETIME_S, COUNTER_LIFETIME_S, maxBytes, maxLetters, SURFACES_PER_WORKSPACE, asked.size]
    const usage = [...asked.values()].flatMap(({ bytes, letters, workspace }) => [
      bytes,
      letters,
      1 + workspaces.indexOf(workspace),
    ])
    const reply = String(await COUNT_LETTERS.run(this.#redis, keys, [...args, ...usage]))
      .split(' ')
      .map(Number)
    return new Map(
      counters.map((counter, i) => [counter, { bytes: reply[2 * i] ?? 0, letters: reply[2 * i + 1] ?? 0 }]),
    )
  }
}

/** Returns the name of the decision about these requests. A job may be refused in part first, and later as a whole. */
function decisionOf(queue: QueueName, jobId: string, requests: readonly RefusedFrame[]): string {
  const indexes = hash('sha256', requests.map(({ index }) => index).join(' ')).slice(0, 16)
  return `job:${queue}:${jobId}:${indexes}`
}

/** Adds a letter to a counter. */
function add<U extends Usage>(usage: U, frame: PayloadFrame): U {
  usage.bytes += letterBytes(frame)
  usage.letters++
  return usage
}

function letterBytes({ body, attributes }: PayloadFrame): number {
  return body.length + attributes.length
}

function counterOf(frame: PayloadFrame): string {
  return `${workspaceCounterOf(frame)}/${frame.surfaceId}`
}

function workspaceCounterOf({ workspaceId, receivedAtMs }: PayloadFrame): string {
  return `day:${new Date(receivedAtMs).toISOString().slice(0, 10)}:${workspaceId}`
}

/** The dead letters of a job that are kept: the object key of each, by the position of its request, and their moves. */
interface KeptLetters {
  readonly objectKeys: ReadonlyMap<number, string>
  readonly moves: readonly Move[]
}

/** Decides which refused requests of a job are kept as dead letters. */
export async function keepLetters(
  quota: LetterQuota | undefined,
  queue: QueueName,
  jobId: string,
  refused: readonly RefusedFrame[],
): Promise<KeptLetters> {
  const letters = new LetterMoves(queue, jobId)
  const objectKeys = new Map<number, string>()
  const isKept = refused.length === 0 ? [] : await quota?.admit(queue, jobId, refused)
  for (const [i, request] of refused.entries()) {
    if (isKept?.[i] ?? true) objectKeys.set(request.index, letters.add(request))
  }
  return { objectKeys, moves: letters.moves() }
}
