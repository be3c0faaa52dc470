import type { Redis } from 'ioredis'
import { type Alerts, alertsSchema } from '../../schemas/records/alerts.ts'
import type { Author } from './changes/change-log.ts'
import { directoryKeys as keys } from './record.ts'
import { createRevisedRules, type NewRules } from './revised-rules.ts'
import type { Command } from './transaction.ts'

/** Stores the receivers of workspaces, and the rules that call them (docs/api/alerts.md). */
export interface AlertsStore {
  /** Returns the receivers and rules of a workspace, or undefined if it never changed them. */
  alerts(workspaceId: string): Promise<Alerts | undefined>
  /** Replaces both. Returns the current revision instead if they have another one than `revision`. */
  replaceAlerts(alerts: NewRules<Alerts>, author: Author): Promise<Alerts | number>
  /** Returns the workspaces that have receivers. */
  alertingWorkspaces(): Promise<string[]>
}

/** Creates the part of the directory that stores receivers and their rules. */
export function createAlertsStore(redis: Redis): AlertsStore {
  const rules = createRevisedRules<Alerts>(redis, {
    key: keys.alerts,
    earlierKey: keys.earlierAlerts,
    schema: alertsSchema,
    action: 'alerts.changed',
    write: writeAlerts,
  })
  return {
    alerts: rules.current,
    replaceAlerts: rules.replace,
    alertingWorkspaces: () => redis.smembers(keys.alerting),
  }
}

/** Returns the commands that store receivers and rules. */
export function writeAlerts(alerts: Alerts): Command[] {
  const { workspaceId, receivers } = alerts
  return [
    ['SET', keys.alerts(workspaceId), JSON.stringify(alertsSchema.parse(alerts))],
    [receivers.length > 0 ? 'SADD' : 'SREM', keys.alerting, workspaceId],
  ]
}
