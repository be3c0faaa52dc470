import type { Letter, LetterKey } from '../clickhouse/queries/letters/letter.ts'
import type { QueueName } from '../schemas/queues/names.ts'
import { DAY_MS, MIB } from '../schemas/units.ts'
import { PIECE_BYTES, writeInPieces } from '../shared/queue/large-values.ts'
import { type QueueKeys, queueKeys } from '../shared/queue/queue.ts'
import type { QueueConnections } from '../shared/queue/queues.ts'
import { isDivided } from '../shared/queue/registry/queue-tag.ts'
import { settledBeforeMs } from '../shared/queue/watermark.ts'
import { TransientError } from '../shared/runtime/errors.ts'

/**
 * Cost that a surface may have unfinished in a queue when a letter of it is replayed, and cost of all surfaces in that
 * queue: 0.1 and 1.8 s of work. So a replay makes way for requests of clients, and takes what is left.
 */
const MAX_SURFACE_COST = 16 * MIB
const MAX_QUEUE_COST = 256 * MIB

/** A claim is kept for longer than its letter by this much. */
const KEPT_LONGER_MS = 7 * DAY_MS
const PURGED = 'purged'

/**
 * Lua that reads a claim. A claim is `<attempt> <time of Redis in ms>` once the letter was replayed, and `purged` afterwards.
 * It is taken if it is of a later attempt than the last one that is settled, as the caller has read it. A replay from before
 * `lostBefore` without an outcome was lost, and takes nothing.
 */
const IS_TAKEN = `
local function isTaken(key, index, settled, lostBefore)
  local claim = redis.call('HGET', key, index)
  if not claim then return false end
  if claim == '${PURGED}' then return true end
  local attempt, time = string.match(claim, '^(%d+) (%d+)$')
  return tonumber(attempt) > tonumber(settled) and tonumber(time) >= tonumber(lostBefore)
end
local function claim(key, index, value, expiresAt)
  redis.call('HSET', key, index, value)
  if tonumber(expiresAt) > redis.call('PEXPIRETIME', key) then redis.call('PEXPIREAT', key, expiresAt) end
end
`

/**
 * KEYS payload, its pieces, pending, flow, shares, batchOf, batches, then the claims of each letter; ARGV job id, payload
 * (empty if it arrived in pieces), frames, bytes, cost, member of the surface, limits of the surface and the queue,
 * batch id (empty for none), its record, then for each letter: index, settled attempt, next attempt, expiry of the claim.
 * Returns the letters that are taken, `busy` or `gone`; or nothing, and then the payload is accepted. Redis does not run it
 * when its memory is full.
 */
const REPLAY = `#!lua
${IS_TAKEN}
local taken = {}
for i = 8, #KEYS do
  local at = 11 + 4 * (i - 8)
  if isTaken(KEYS[i], ARGV[at], ARGV[at + 1], 0) then table.insert(taken, i - 8) end
end
if #taken > 0 then return taken end
local cost = tonumber(ARGV[5])
local used = tonumber(redis.call('HGET', KEYS[4], 'acceptedCost') or 0) - tonumber(redis.call('HGET', KEYS[4], 'doneCost') or 0)
local own = tonumber(redis.call('ZSCORE', KEYS[5], ARGV[6]) or 0)
if own > 0 and own + cost > tonumber(ARGV[7]) then return 'busy' end
if used > 0 and used + cost > tonumber(ARGV[8]) then return 'busy' end
if ARGV[2] == '' then
  if redis.call('EXISTS', KEYS[2]) == 0 then return 'gone' end
  redis.call('RENAME', KEYS[2], KEYS[1])
  redis.call('PERSIST', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[3], time[1] * 1000, ARGV[1])
redis.call('HINCRBY', KEYS[4], 'acceptedPayloads', ARGV[3])
redis.call('HINCRBY', KEYS[4], 'acceptedBytes', ARGV[4])
redis.call('HINCRBY', KEYS[4], 'acceptedCost', ARGV[5])
redis.call('ZINCRBY', KEYS[5], ARGV[5], ARGV[6])
if ARGV[9] ~= '' then
  redis.call('HSET', KEYS[6], ARGV[1], ARGV[9])
  redis.call('HSET', KEYS[7], ARGV[9], ARGV[10])
end
for i = 8, #KEYS do
  local at = 11 + 4 * (i - 8)
  claim(KEYS[i], ARGV[at], ARGV[at + 2] .. ' ' .. nowMs, ARGV[at + 3])
end
return taken
`

/**
 * KEYS the claims of each letter; ARGV the time before which all replays are settled or lost, then for each letter: index,
 * settled attempt, expiry of the claim. Returns the letters that are being replayed.
 */
const PURGE = `#!lua flags=allow-oom
${IS_TAKEN}
local taken = {}
for i = 1, #KEYS do
  local at = 3 * i - 1
  if redis.call('HGET', KEYS[i], ARGV[at]) ~= '${PURGED}' then
    if isTaken(KEYS[i], ARGV[at], ARGV[at + 1], ARGV[1]) then table.insert(taken, i - 1)
    else claim(KEYS[i], ARGV[at], '${PURGED}', ARGV[at + 2]) end
  end
end
return taken
`

interface Scripts {
  penstockReplayLetters(
    numberOfKeys: number,
    ...args: (string | number | Buffer)[]
  ): Promise<number[] | 'busy' | 'gone'>
  penstockPurgeLetters(numberOfKeys: number, ...args: (string | number)[]): Promise<number[]>
}

/** A letter to claim, and the queue and workspace that it belongs to. */
type ClaimedLetter = LetterKey & Pick<Letter, 'queue' | 'attempt'>

/** State of a letter by its claim. */
export interface ClaimState {
  readonly isPurged: boolean
  /** The attempt that was begun last; 0 if there was none. */
  readonly attempt: number
  readonly replayedAtMs: number
}

/** The requests of one surface that are replayed as one payload. */
interface ReplayPayload {
  readonly queue: QueueName
  readonly jobId: string
  readonly payload: Buffer
  readonly member: string
  readonly cost: number
  readonly letters: readonly ClaimedLetter[]
  /** Names a batch of the job that leaves these tables out, because they have the rows of the letters already. */
  readonly batch?: { readonly batchId: string; readonly storedTables: readonly string[] } | undefined
}

/**
 * Claims of dead letters: a hash for each job that contained them, in the first partition of the queue, into which they are
 * replayed whatever partition they come from. So a claim is found again whatever the number of partitions is. A letter is
 * claimed in the step that accepts its payload, so of any number of replays one is stored. A claim lasts as long as the letter
 * may, also when the row with the outcome of its replay is late.
 */
export class LetterClaims {
  readonly #queues: QueueConnections
  readonly #retentionMs: number

  constructor(queues: QueueConnections, retentionDays: number) {
    this.#queues = queues
    this.#retentionMs = retentionDays * DAY_MS
    const redis = queues.common
    redis.defineCommand('penstockReplayLetters', { lua: REPLAY })
    redis.defineCommand('penstockPurgeLetters', { lua: PURGE })
  }

  /** Returns the claim of each letter, or undefined where there is none. */
  async states(
    workspaceId: string,
    letters: readonly (LetterKey & Pick<Letter, 'queue'>)[],
  ): Promise<(ClaimState | undefined)[]> {
    const byKey = new Map<string, number[]>()
    for (const [i, { queue, jobId }] of letters.entries()) {
      const key = this.#keysOf(queue).claims(workspaceId, jobId)
      byKey.set(key, [...(byKey.get(key) ?? []), i])
    }
    const states: (ClaimState | undefined)[] = new Array(letters.length)
    await Promise.all(
      [...byKey].map(async ([key, positions]) => {
        const values = await this.#queues.common.hmget(key, ...positions.map(i => String(letters[i]?.index)))
        for (const [at, i] of positions.entries()) states[i] = stateOf(values[at])
      }),
    )
    return states
  }

  /**
   * Accepts a payload and claims its letters, or does nothing. Returns the positions of the letters in the way, or `busy` if
   * the queue has no room for replays.
   */
  async replay(workspaceId: string, replay: ReplayPayload, nowMs: number): Promise<readonly number[] | 'busy'> {
    const { queue, jobId, payload, member, cost, letters, batch } = replay
    const keys = this.#keysOf(queue)
    const isLarge = payload.length > PIECE_BYTES
    if (isLarge) await writeInPieces(this.#queues.common, keys.arriving(jobId), payload)
    const names = [
      keys.payload(jobId),
      keys.arriving(jobId),
      keys.pending,
      keys.flow,
      keys.shares,
      keys.batchOf,
      keys.batches,
    ]
    const record = batch ? JSON.stringify({ jobIds: [jobId], storedTables: batch.storedTables }) : ''
    const args = [
      ...[jobId, isLarge ? '' : payload, letters.length, payload.length, cost, member],
      ...[MAX_SURFACE_COST, MAX_QUEUE_COST, batch?.batchId ?? '', record],
      ...letters.flatMap(letter => [
        ...[letter.index, letter.attempt, letter.attempt + 1, this.#expiryOf(letter, nowMs)],
      ]),
    ]
    const claims = letters.map(letter => keys.claims(workspaceId, letter.jobId))
    const reply = await this.#scripts
      .penstockReplayLetters(names.length + claims.length, ...names, ...claims, ...args)
      .catch(busyIfFull)
    if (reply === 'gone') throw new TransientError('the pieces of a replayed payload have expired')
    return reply
  }

  /**
   * Claims letters for good, so that none is replayed any more. Returns the positions of those that are being replayed. A
   * replay that has no outcome although everything of its time is settled was lost, and is not in the way.
   */
  async purge(workspaceId: string, letters: readonly ClaimedLetter[], nowMs: number): Promise<readonly number[]> {
    const lostBeforeMs = await settledBeforeMs(this.#queues, workspaceId)
    const taken: number[] = []
    for (const queue of new Set(letters.map(letter => letter.queue))) {
      const positions = [...letters.keys()].filter(i => letters[i]?.queue === queue)
      const ours = positions.map(i => letters[i] as ClaimedLetter)
      const claims = ours.map(letter => this.#keysOf(queue).claims(workspaceId, letter.jobId))
      const args = ours.flatMap(letter => [letter.index, letter.attempt, this.#expiryOf(letter, nowMs)])
      const found = await this.#scripts.penstockPurgeLetters(claims.length, ...claims, lostBeforeMs, ...args)
      taken.push(...found.map(at => positions[at] as number))
    }
    return taken
  }

  get #scripts(): Scripts {
    return this.#queues.common as unknown as Scripts
  }

  #keysOf(queue: QueueName): QueueKeys {
    return queueKeys(queue, isDivided(queue) ? this.#queues.first : 0)
  }

  #expiryOf({ receivedAtMs }: LetterKey, nowMs: number): number {
    return Math.max(nowMs, Math.floor(receivedAtMs) + this.#retentionMs) + KEPT_LONGER_MS
  }
}

function stateOf(value: string | null | undefined): ClaimState | undefined {
  if (value === null || value === undefined) return undefined
  const [attempt = '', replayedAtMs] = value.split(' ')
  const isPurged = attempt === PURGED
  return { isPurged, attempt: isPurged ? 0 : Number(attempt), replayedAtMs: Number(replayedAtMs ?? 0) }
}

/** Redis refuses to run a script that adds data when its memory is full. */
function busyIfFull(error: unknown): 'busy' {
  if (error instanceof Error && error.message.startsWith('OOM')) return 'busy'
  throw error
}
