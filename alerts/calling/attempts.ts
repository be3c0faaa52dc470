import type { Redis } from 'ioredis'
import { type Attempt, attemptSchema } from '../../schemas/records/alerts.ts'
import { DAY_S } from '../../schemas/units.ts'
import { parseRecord, upkeepKeys } from '../../shared/directory/record.ts'

/** Attempts of a workspace that are kept, the latest. */
const ATTEMPTS_KEPT = 1_000
const KEPT_S = 30 * DAY_S

/** Keeps an attempt to send a delivery of a workspace. */
export async function keepAttempt(redis: Redis, workspaceId: string, attempt: Attempt): Promise<void> {
  const key = upkeepKeys.attempts(workspaceId)
  const text = JSON.stringify(attemptSchema.parse(attempt))
  await redis
    .multi()
    .lpush(key, text)
    .ltrim(key, 0, ATTEMPTS_KEPT - 1)
    .expire(key, KEPT_S)
    .exec()
}

/** Returns the last attempts of a workspace, the latest first. */
export async function lastAttempts(redis: Redis, workspaceId: string, limit: number): Promise<Attempt[]> {
  const key = upkeepKeys.attempts(workspaceId)
  return (await redis.lrange(key, 0, limit - 1)).map(text => parseRecord(key, text, attemptSchema))
}
