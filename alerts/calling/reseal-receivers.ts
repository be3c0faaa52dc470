import type { Redis } from 'ioredis'
import { alertsSchema } from '../../schemas/records/alerts.ts'
import { writeAlerts } from '../../shared/directory/alerts-store.ts'
import { directoryKeys, parseRecord } from '../../shared/directory/record.ts'
import { decideAndCommit } from '../../shared/directory/transaction.ts'
import { describeError, PermanentError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Sealing } from '../delivery/sealing.ts'
import { openTarget, sealTarget } from './targets.ts'

/** Dependencies of sealing receivers again. */
interface ResealDeps {
  /** Redis of the directory. */
  readonly redis: Redis
  readonly sealing: Sealing
  readonly logger: Logger
  /** Throws when this process is stopping or is not elected any more. Runs between two workspaces. */
  readonly assertElected: () => Promise<void>
}

/**
 * Seals the receivers of all workspaces with the current key, so that the previous one can be removed. Revision and log stay:
 * no member has changed anything. A receiver that neither key opens stays as it is.
 */
export async function resealReceivers({ redis, sealing, logger, assertElected }: ResealDeps): Promise<void> {
  let [resealed, left] = [0, 0]
  for (const workspaceId of await redis.smembers(directoryKeys.alerting)) {
    await assertElected()
    const key = directoryKeys.alerts(workspaceId)
    const done = await decideAndCommit(redis, async () => {
      const text = await redis.get(key)
      if (text === null) return { result: { resealed: 0, left: 0 } }
      const alerts = parseRecord(key, text, alertsSchema)
      const counts = { resealed: 0, left: 0 }
      const receivers = alerts.receivers.map(receiver => {
        if (sealing.isCurrent(receiver.sealed)) return receiver
        try {
          const target = openTarget(sealing, workspaceId, receiver)
          counts.resealed++
          return { ...receiver, sealed: sealTarget(sealing, workspaceId, receiver.id, target) }
        } catch (error) {
          if (!(error instanceof PermanentError)) throw error
          counts.left++
          logger.warn({ workspaceId, receiver: receiver.id, reason: describeError(error) }, 'a receiver stays sealed')
          return receiver
        }
      })
      if (counts.resealed === 0) return { result: counts }
      const commands = writeAlerts({ ...alerts, receivers })
      return { result: counts, transaction: { guards: [['GET', key, text]], commands } }
    })
    resealed += done.resealed
    left += done.left
  }
  logger.info({ resealed, left }, 'the receivers of alerts are sealed with DELIVERY_KEY')
}
