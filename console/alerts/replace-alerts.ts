import { HttpError } from '@oazapfts/runtime'
import {
  type AlertRule,
  type Alerts,
  listChanges,
  type ReplaceAlertsRequest,
  replaceAlerts,
} from '../api/generated/client.ts'
import { formatAge } from '../state/format.ts'

/** A receiver of a request. */
export type RequestedReceiver = ReplaceAlertsRequest['receivers'][number]

/** Receivers and rules as they were read, and how to read them again. */
export interface ReadAlerts {
  readonly alerts: Alerts
  readonly again: () => void
}

/** A change of receivers or rules. Receivers that stay are named without their targets. */
interface AlertsChange {
  readonly receivers?: (kept: readonly RequestedReceiver[]) => readonly RequestedReceiver[]
  readonly rules?: (kept: readonly AlertRule[]) => readonly AlertRule[]
}

const CONFLICT = 409

/**
 * Changes receivers and rules. If somebody else has changed them since they were read, they are read again, and the error states
 * who it was: the same change can then be made to those that there are.
 */
export async function changeAlerts(
  { alerts, again }: ReadAlerts,
  change: AlertsChange,
  signal: AbortSignal,
): Promise<Alerts> {
  const kept = alerts.receivers.map(({ name, channel, disabled }) => ({
    ...{ name, channel, disabled: disabled !== undefined },
  }))
  const receivers = [...(change.receivers?.(kept) ?? kept)]
  const rules = [...(change.rules?.(alerts.rules) ?? alerts.rules)]
  try {
    return await replaceAlerts({ replaceAlertsRequest: { revision: alerts.revision, receivers, rules } }, { signal })
  } catch (error) {
    if (!(error instanceof HttpError && error.status === CONFLICT)) throw error
    const who = await lastAuthor(signal)
    again()
    throw new Error(`${who}. The form keeps what you typed: do it again`, { cause: error })
  }
}

const CHANGES_READ = 20

/** Returns who has made the last change of receivers and rules, and when, if this user may see that. */
async function lastAuthor(signal: AbortSignal): Promise<string> {
  const page = await listChanges({ limit: CHANGES_READ }, { signal }).catch(() => undefined)
  const last = page?.changes.find(({ action }) => action === 'alerts.changed')
  if (last === undefined) return 'somebody changed receivers or rules meanwhile'
  return `${last.by?.userId ?? 'an operator'} changed receivers or rules ${formatAge(last.createdAt)}`
}
