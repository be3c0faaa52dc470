import type { Redis } from 'ioredis'
import { alertEventSchema, type CalledEvent } from '../../schemas/http/alerts/events.ts'
import { DAY_S } from '../../schemas/units.ts'
import { parseRecord, upkeepKeys } from '../../shared/directory/record.ts'
import { type Command, commitIf } from '../../shared/directory/transaction.ts'

/** A rule, and a receiver that it calls. */
export interface CalledBy {
  readonly workspaceId: string
  readonly receiverId: string
  readonly ruleName: string
}

/** Events that wait for the next message of a rule to a receiver. */
export interface HeldEvents extends CalledBy {
  readonly events: readonly CalledEvent[]
}

/** Most events that wait for a message. The latest stay. */
export const HELD_MAX = 1_000
const AT_ONCE = 100

/**
 * Keeps the events of rules that rest or are quiet, until their next message is due. One process is elected to use it. An event
 * that is held twice, after a crash, is sent once.
 */
export class EventHolder {
  readonly #redis: Redis

  constructor(redis: Redis) {
    this.#redis = redis
  }

  /** Returns when a rule sent something to a receiver last, in Unix ms. */
  async lastMs(by: CalledBy): Promise<number | undefined> {
    const text = await this.#redis.get(upkeepKeys.messaged(memberOf(by)))
    return text === null ? undefined : Number(text)
  }

  /** Returns what is due. It stays until `release`. */
  async due(nowMs: number): Promise<HeldEvents[]> {
    const members = await this.#redis.zrangebyscore(upkeepKeys.holding, '-inf', nowMs, 'LIMIT', 0, AT_ONCE)
    return Promise.all(
      members.map(async member => {
        const [workspaceId, receiverId, ruleName] = JSON.parse(member) as [string, string, string]
        const texts = await this.#redis.lrange(upkeepKeys.held(member), 0, -1)
        const events = [...new Set(texts)].map(text => parseRecord(member, text, alertEventSchema) as CalledEvent)
        return { workspaceId, receiverId, ruleName, events }
      }),
    )
  }

  /** Removes what was due, once its deliveries are queued, and runs commands in the same step. */
  async release(by: CalledBy, commands: readonly Command[]): Promise<void> {
    const member = memberOf(by)
    const removals: Command[] = [
      ['DEL', upkeepKeys.held(member)],
      ['ZREM', upkeepKeys.holding, member],
    ]
    await commitIf(this.#redis, { guards: [], commands: [...removals, ...commands] })
  }

  /** Holds what was due until another time. */
  async postpone(by: CalledBy, dueMs: number): Promise<void> {
    await this.#redis.zadd(upkeepKeys.holding, dueMs, memberOf(by))
  }
}

/** Returns the commands that hold events until they are due. Those that wait already keep their time. */
export function holdEvents(by: CalledBy, events: readonly CalledEvent[], dueMs: number): Command[] {
  const member = memberOf(by)
  const key = upkeepKeys.held(member)
  return [
    ['RPUSH', key, ...events.map(event => JSON.stringify(event))],
    ['LTRIM', key, -HELD_MAX, -1],
    ['ZADD', upkeepKeys.holding, 'NX', dueMs, member],
  ]
}

/** Returns the commands that remember when a rule sent something, for the longest rest of a rule. */
export function rememberSent(by: CalledBy, nowMs: number): Command[] {
  return [['SET', upkeepKeys.messaged(memberOf(by)), nowMs, 'EX', DAY_S]]
}

/** Returns the keys of the events that are held of a workspace. */
export async function heldEventsOf(redis: Redis, workspaceId: string): Promise<string[]> {
  const members = await redis.zrange(upkeepKeys.holding, '0', '-1')
  return members.filter(member => (JSON.parse(member) as string[])[0] === workspaceId).map(upkeepKeys.held)
}

function memberOf({ workspaceId, receiverId, ruleName }: CalledBy): string {
  return JSON.stringify([workspaceId, receiverId, ruleName])
}
