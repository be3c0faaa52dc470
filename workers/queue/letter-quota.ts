import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { QueueName } from '../../schemas/queues/names.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { LetterMoves, type RefusedFrame } from './letter-moves.ts'
import type { Move } from './payload-store.ts'

/** Bounds of the dead letters of one surface that arrived on one day (docs/contract.md#dead-letters). */
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
export type OnLetters = (queue: QueueName, kept: number, discarded: number) => void

/**
 * How long a decision can be repeated. After that, a job that was never finished is counted a second time, which matters
 * only if its receipts were stored before and its surface has reached a bound in between.
 */
const DECISION_LIFETIME_S = 60 * 60
/** The counters of a day are used by requests that waited for at most this long. Later ones begin with zero. */
const COUNTER_LIFETIME_S = 3 * 24 * 60 * 60

/**
 * KEYS the decision of the job, then a counter for each surface and day; ARGV lifetime of the decision, lifetime of the
 * counters, most bytes, most letters, then bytes and letters for each counter. Returns bytes and letters of each counter
 * before the job. The decision is only stored if something is left of a bound, because otherwise it repeats by itself: a
 * flood leaves nothing in Redis but its counters. Runs even if the memory of Redis is full, since it is part of what frees it.
 */
const COUNT_LETTERS = `#!lua flags=allow-oom
local known = redis.call('GET', KEYS[1])
if known then return known end
local used = {}
local isOpen = false
for i = 2, #KEYS do
  local bytes, letters = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
  local bytesBefore = redis.call('HINCRBY', KEYS[i], 'bytes', bytes) - bytes
  local lettersBefore = redis.call('HINCRBY', KEYS[i], 'letters', letters) - letters
  redis.call('EXPIRE', KEYS[i], ARGV[2])
  if bytesBefore < tonumber(ARGV[3]) and lettersBefore < tonumber(ARGV[4]) then isOpen = true end
  table.insert(used, string.format('%.0f %.0f', bytesBefore, lettersBefore))
end
local reply = table.concat(used, ' ')
if isOpen then redis.call('SET', KEYS[1], reply, 'EX', ARGV[1]) end
return reply
`

interface CountLetters {
  penstockCountLetters(numberOfKeys: number, ...args: (string | number)[]): Promise<string>
}

/** Bytes and letters of one surface and day. */
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
    redis.defineCommand('penstockCountLetters', { lua: COUNT_LETTERS })
  }

  async admit(queue: QueueName, jobId: string, requests: readonly RefusedFrame[]): Promise<readonly boolean[]> {
    const asked = new Map<string, Usage>()
    const counters = requests.map(({ frame }) => counterOf(frame))
    for (const [i, request] of requests.entries()) add(asked, counters[i] as string, letterBytes(request))
    const used = await this.#count(decisionOf(queue, jobId, requests), asked)
    const decisions = requests.map((request, i) => {
      const counter = counters[i] as string
      const bytes = letterBytes(request)
      const before = add(used, counter, bytes)
      return before.bytes + bytes <= this.#limits.maxBytes && before.letters < this.#limits.maxLetters
    })
    const kept = decisions.filter(Boolean).length
    this.#onLetters?.(queue, kept, decisions.length - kept)
    return decisions
  }

  /** Adds the usage to the counters, once for each decision. Returns the counters before it. */
  async #count(decision: string, asked: ReadonlyMap<string, Usage>): Promise<Map<string, Usage>> {
    const { maxBytes, maxLetters } = this.#limits
    const { quota } = queueKeys('dead-letters')
    const keys = [quota(decision), ...[...asked.keys()].map(counter => quota(counter))]
    const args = [DECISION_LIFETIME_S, COUNTER_LIFETIME_S, maxBytes, maxLetters]
    const usage = [...asked.values()].flatMap(({ bytes, letters }) => [bytes, letters])
    const redis = this.#redis as unknown as CountLetters
    const reply = (await redis.penstockCountLetters(keys.length, ...keys, ...args, ...usage)).split(' ').map(Number)
    return new Map(
      [...asked.keys()].map((counter, i) => [counter, { bytes: reply[2 * i] ?? 0, letters: reply[2 * i + 1] ?? 0 }]),
    )
  }
}

/** Returns the name of the decision about these requests. A job may be refused in part first, and later as a whole. */
function decisionOf(queue: QueueName, jobId: string, requests: readonly RefusedFrame[]): string {
  const indexes = hash('sha256', requests.map(({ index }) => index).join(' ')).slice(0, 16)
  return `job:${queue}:${jobId}:${indexes}`
}

/** Adds a letter to a counter and returns the counter as it was before. */
function add(usage: Map<string, Usage>, counter: string, bytes: number): Usage {
  const before = usage.get(counter) ?? { bytes: 0, letters: 0 }
  usage.set(counter, { bytes: before.bytes + bytes, letters: before.letters + 1 })
  return before
}

function letterBytes({ frame }: RefusedFrame): number {
  return frame.body.length + frame.attributes.length
}

function counterOf({ workspaceId, surfaceId, receivedAtMs }: RefusedFrame['frame']): string {
  return `day:${new Date(receivedAtMs).toISOString().slice(0, 10)}:${workspaceId}/${surfaceId}`
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
