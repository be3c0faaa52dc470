import type { Sending } from '../../alerts/calling/send-deps.ts'
import { deliveryTo, openTarget } from '../../alerts/calling/targets.ts'
import type { DeliveryOutcome } from '../../alerts/delivery/outcome.ts'
import { send } from '../../alerts/delivery/send.ts'
import type { failingRules } from '../../alerts/measuring/rule-states.ts'
import { type Tested, testReceiver, testReceiverSchema } from '../../schemas/http/alerts/deliveries.ts'
import {
  type AlertsAnswer,
  readAlerts,
  replaceAlerts,
  replaceAlertsSchema,
} from '../../schemas/http/alerts/operations.ts'
import { type AlertRule, type Alerts, DEFAULT_ALERT_RULES, type Receiver } from '../../schemas/records/alerts.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { occasionId } from '../../shared/ids/occasion-id.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { authorOf, queryDirectory } from '../http/directory.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { invalid, type Outcome, okReply, otherRevision } from '../http/outcome.ts'
import { changedReceivers } from './changed-receivers.ts'
import { faultOfExpression } from './expression-fault.ts'
import { ALERTS } from './resource.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<Directory, 'alerts' | 'replaceAlerts'>
  /** Undefined without DELIVERY_KEY: then no receiver can be stored. */
  readonly deliveries: Sending | undefined
  readonly failingRules: (workspaceId: string, rules: readonly AlertRule[]) => ReturnType<typeof failingRules>
}

/** Returns the routes of receivers and the rules that call them (docs/api/alerts.md). */
export function alertRoutes(deps: Deps): Route[] {
  return [readAlertsRoute(deps), replaceAlertsRoute(deps), testReceiverRoute(deps)]
}

const NO_KEY = invalid('this installation sends no alerts: its operator has to set DELIVERY_KEY')

function readAlertsRoute({ directory, ...deps }: Deps): Route {
  return guardedRoute(deps, readAlerts, {
    resource: ALERTS,
    async run({ workspaceId }): Promise<Outcome<AlertsAnswer>> {
      const alerts = await queryDirectory(directory.alerts(workspaceId))
      const failing = alerts === undefined ? [] : await queryDirectory(deps.failingRules(workspaceId, alerts.rules))
      return { ok: true, value: { ...present(alerts), ...(failing.length > 0 && { failing }) } }
    },
  })
}

function replaceAlertsRoute({ directory, deliveries, ...deps }: Deps): Route {
  return creationRoute(deps, replaceAlerts, {
    resource: ALERTS,
    body: replaceAlertsSchema,
    reply: okReply,
    async create({ caller, body }): Promise<Outcome<AlertsAnswer>> {
      const { workspaceId } = caller
      for (const [i, rule] of body.rules.entries()) {
        const fault = faultOfExpression(`rules[${i}]`, rule)
        if (fault !== undefined) return invalid(fault)
      }
      const current = await queryDirectory(directory.alerts(workspaceId))
      if (body.receivers.length > 0 && deliveries === undefined) return NO_KEY
      const author = authorOf(caller, deps.now())
      const changed = changedReceivers({
        ...{ workspaceId, requested: body.receivers, current: current?.receivers ?? [] },
        ...{ sealing: deliveries?.sealing, at: new Date(author.now).toISOString() },
      })
      if (!changed.ok) return changed
      const { receivers, secrets } = changed.value
      const { revision, rules } = body
      const replaced = await queryDirectory(
        directory.replaceAlerts({ workspaceId, revision, receivers, rules }, author),
      )
      if (typeof replaced === 'number') return otherRevision(replaced)
      return { ok: true, value: present(replaced, secrets) }
    },
  })
}

function present(alerts: Alerts | undefined, secrets: ReadonlyMap<string, string> = new Map()): AlertsAnswer {
  if (alerts === undefined) {
    const rules = DEFAULT_ALERT_RULES.map(rule => ({ ...rule, kinds: [...rule.kinds] }))
    return { revision: 0, receivers: [], rules: rules as AlertsAnswer['rules'] }
  }
  const { revision, changedAt, receivers, rules } = alerts
  return {
    ...{ revision, changedAt, rules },
    receivers: receivers.map(({ sealed: _, ...receiver }: Receiver) => {
      const secret = secrets.get(receiver.id)
      return { ...receiver, ...(secret !== undefined && { secret }) }
    }),
  }
}

function testReceiverRoute({ directory, deliveries, ...deps }: Deps): Route {
  return creationRoute(deps, testReceiver, {
    resource: ALERTS,
    body: testReceiverSchema,
    reply: okReply,
    async create({ caller, body }): Promise<Outcome<Tested>> {
      const { workspaceId } = caller
      if (deliveries === undefined) return NO_KEY
      const alerts = await queryDirectory(directory.alerts(workspaceId))
      const receiver = alerts?.receivers.find(({ name }) => name === body.receiver)
      if (receiver === undefined) return invalid('receiver must be the name of a receiver of the workspace')
      return { ok: true, value: presentOutcome(await sendTest(deliveries, workspaceId, receiver, deps.now())) }
    },
  })
}

async function sendTest(
  deliveries: Sending,
  workspaceId: string,
  receiver: Receiver,
  nowMs: number,
): Promise<DeliveryOutcome> {
  const id = occasionId([workspaceId, receiver.id, 'test', nowMs])
  const timestamp = new Date(nowMs).toISOString()
  const event = { type: 'test' as const, timestamp, data: { id, workspaceId, resolved: false } }
  const rule = { id: 'test', name: 'Test' }
  try {
    const target = openTarget(deliveries.sealing, workspaceId, receiver)
    return await send(deliveries, deliveryTo(target, { id: `${id}_${receiver.id}`, events: [event], rule }))
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error
    return { kind: 'refused', reason: error.message, durationMs: 0 }
  }
}

function presentOutcome({ kind, status, reason, answer, durationMs }: DeliveryOutcome): Tested {
  return {
    ...{ result: kind, durationMs },
    ...(status !== undefined && { status }),
    ...(reason !== undefined && { reason }),
    ...(answer !== undefined && { answer }),
  }
}
