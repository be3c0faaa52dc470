import type { Redis } from 'ioredis'
import { type Creation, creationSchema } from '../../schemas/records/creation.ts'
import { DAY_MS } from '../../schemas/units.ts'
import { directoryKeys as keys, parseRecord } from './record.ts'
import { type Command, type Decision, type DirectoryTransaction, decideAndCommit } from './transaction.ts'

/** How long a repeated creation is recognized. */
const CREATION_LIFETIME_MS = DAY_MS
/** Greatest number of creations of a workspace that are remembered. Concurrent requests may exceed it by their number. */
export const CREATIONS_MAX = 10_000
const RECORDS_AT_ONCE = 100

/** The refusal of one more. */
export const TOO_MANY_CREATIONS = {
  message: `the workspace has created ${CREATIONS_MAX} things with an Idempotency-Key in 24 h, which is the maximum: send it later or without the header`,
  retryAfterSeconds: 60,
} as const

/** A creation before it happens. */
export type NewCreation = Omit<Creation, 'answer'>

/** A creation that is to happen once. */
export interface Once {
  readonly creation: NewCreation
  /** Returns the response to a result of the step that creates. */
  readonly answerOf: (result: unknown) => Creation['answer']
}

/** Thrown in place of a creation. `stored` is the earlier one; undefined if too many are remembered. */
export class CreationRefused extends Error {
  override readonly name = 'CreationRefused'
  readonly stored: Creation | undefined

  constructor(stored: Creation | undefined) {
    super(stored ? 'it was created before' : 'too many creations are remembered')
    this.stored = stored
  }
}

/** Stores the creations that clients may repeat. */
export interface CreationStore {
  /** Yields the creations of a workspace, the oldest first. */
  creations(workspaceId: string): AsyncGenerator<Creation>
}

/** Creates the part of the directory that stores creations. */
export function createCreationStore(redis: Redis): CreationStore {
  return {
    async *creations(workspaceId) {
      const ids = await redis.zrange(keys.creations(workspaceId), '0', '-1')
      for (let at = 0; at < ids.length; at += RECORDS_AT_ONCE) {
        const names = ids.slice(at, at + RECORDS_AT_ONCE).map(id => keys.creation(workspaceId, id))
        for (const [i, text] of (await redis.mget(names)).entries()) {
          if (text !== null) yield parseRecord(names[i] ?? '', text, creationSchema)
        }
      }
    },
  }
}

/** A transaction for a result that needs none, and is to be remembered. */
export const NOTHING: DirectoryTransaction = { guards: [], commands: [] }

/**
 * Does as `decideAndCommit` does, and remembers the creation in the same step. So of several requests with one idempotency key
 * one creates. Throws a CreationRefused for the others. A decision without a transaction is not remembered.
 */
export function decideOnce<T>(redis: Redis, once: Once | undefined, decide: () => Promise<Decision<T>>): Promise<T> {
  if (once === undefined) return decideAndCommit(redis, decide)
  const { creation, answerOf } = once
  const nowMs = Date.parse(creation.createdAt)
  const key = keys.creation(creation.workspaceId, creation.id)
  return decideAndCommit(redis, async () => {
    const text = await redis.get(key)
    const stored = text === null ? undefined : parseRecord(key, text, creationSchema)
    // The caller's clock decides. The expiry in Redis only cleans up.
    if (stored && nowMs - Date.parse(stored.createdAt) < CREATION_LIFETIME_MS) throw new CreationRefused(stored)
    const index = keys.creations(creation.workspaceId)
    if ((await redis.zcount(index, `(${nowMs}`, '+inf')) >= CREATIONS_MAX) throw new CreationRefused(undefined)
    const decision = await decide()
    const { transaction, result } = decision
    if (transaction === undefined) return decision
    const commands = writeCreation({ ...creation, answer: answerOf(result) }, nowMs)
    return {
      result,
      transaction: {
        guards: [...transaction.guards, ['GET', key, text ?? '']],
        commands: [...transaction.commands, ...commands],
      },
    }
  })
}

/** Returns the commands that store a creation, the record first. There are none if it is not recognized any more. */
export function writeCreation(creation: Creation, nowMs: number): Command[] {
  const { workspaceId, id, createdAt } = creation
  const endsAtMs = Date.parse(createdAt) + CREATION_LIFETIME_MS
  if (endsAtMs <= nowMs) return []
  const index = keys.creations(workspaceId)
  const text = JSON.stringify(creationSchema.parse(creation))
  return [
    ['SET', keys.creation(workspaceId, id), text, 'PX', endsAtMs - nowMs],
    ['ZREMRANGEBYSCORE', index, '-inf', nowMs],
    ['ZADD', index, endsAtMs, id],
    ['PEXPIRE', index, CREATION_LIFETIME_MS],
  ]
}
