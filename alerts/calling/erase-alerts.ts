import type { Redis } from 'ioredis'
import { attemptSchema, occasionSchema } from '../../schemas/records/alerts.ts'
import { mentionsOf, type Naming } from '../../shared/directory/findings/mentions.ts'
import { parseRecord, upkeepKeys } from '../../shared/directory/record.ts'
import type { DeliveryQueue } from './delivery-queue.ts'
import { heldEventsOf } from './held-events.ts'

/** Dependencies of erasing a person from alerts. */
interface EraseAlertsDeps {
  /** Redis of the directory. */
  readonly redis: Redis
  readonly queue: Pick<DeliveryQueue, 'forget'>
  /** Runs between two steps. */
  readonly onStep: () => Promise<void>
}

/** Entries of a list that are read at once. */
const AT_ONCE = 1_000

/**
 * Removes what names a person from the alerts of a workspace: occasions, events that are held, and deliveries, also those that were
 * parked or delivered, with what a receiver has answered. It may be interrupted and repeated.
 */
export async function eraseAlerts(deps: EraseAlertsDeps, workspaceId: string, naming: Naming): Promise<void> {
  const mentions = mentionsOf(naming)
  const names = (value: unknown) => mentions(textsOf(value).join('\n'))
  const { occasions } = upkeepKeys
  await removeWhere(deps, occasions, text => {
    const occasion = parseRecord(occasions, text, occasionSchema)
    return occasion.workspaceId === workspaceId && names(occasion)
  })
  for (const key of await heldEventsOf(deps.redis, workspaceId)) {
    await removeWhere(deps, key, text => names(JSON.parse(text)))
  }
  await deps.queue.forget(workspaceId, names, deps.onStep)
  const attempts = upkeepKeys.attempts(workspaceId)
  await removeWhere(deps, attempts, text => names(parseRecord(attempts, text, attemptSchema)))
}

/** Removes entries of a list, to whose ends others may be added meanwhile. */
async function removeWhere(
  { redis, onStep }: EraseAlertsDeps,
  key: string,
  isErased: (text: string) => boolean,
): Promise<void> {
  for (let begin = await redis.llen(key); begin > 0; begin -= AT_ONCE) {
    await onStep()
    // The last entries first: removing these moves none that is still to be read.
    const texts = await redis.lrange(key, Math.max(0, begin - AT_ONCE), begin - 1)
    for (const text of texts.filter(isErased)) await redis.lrem(key, 0, text)
  }
}

/** Returns every text in a value of JSON. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : []
}
