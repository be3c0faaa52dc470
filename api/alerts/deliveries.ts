import type { lastAttempts } from '../../alerts/calling/attempts.ts'
import type { DeliveryQueue } from '../../alerts/calling/delivery-queue.ts'
import {
  type DeliveriesAnswer,
  type DeliveryAnswer,
  type DeliveryState,
  LISTED_ATTEMPTS_MAX,
  listDeliveries,
  listDeliveriesQuerySchema,
  readDelivery,
  replayDelivery,
  replayDeliverySchema,
} from '../../schemas/http/alerts/deliveries.ts'
import type { Attempt } from '../../schemas/records/alerts.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { queryDirectory } from '../http/directory.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { type Outcome, okReply, type Refusal } from '../http/outcome.ts'
import type { Resource } from '../http/resource.ts'

interface DeliveryRoutesDeps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<Directory, 'alerts'>
  readonly deliveryQueue: Pick<DeliveryQueue, 'find' | 'replay'>
  readonly lastAttempts: (workspaceId: string, limit: number) => ReturnType<typeof lastAttempts>
}

/** Returns the routes of what is sent to receivers (docs/api/alerts.md#deliveries). */
export function deliveryRoutes(deps: DeliveryRoutesDeps): Route[] {
  return [listDeliveriesRoute(deps), readDeliveryRoute(deps), replayDeliveryRoute(deps)]
}

const DELIVERY: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such delivery, or it is not kept any more' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the deliveries of alerts are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}
const NOT_FOUND: Refusal = { ok: false, problem: DELIVERY.notFound }
const NOT_KEPT: Refusal = {
  ok: false,
  problem: { code: 'NOT_FOUND', message: 'the message of this delivery is not kept any more: it cannot be sent again' },
}
const IS_DELIVERED: Refusal = {
  ok: false,
  problem: { code: 'REQUEST_INVALID', status: 409, message: 'the receiver has accepted this delivery' },
}

function listDeliveriesRoute(deps: DeliveryRoutesDeps): Route {
  return guardedRoute(deps, listDeliveries, {
    resource: DELIVERY,
    query: listDeliveriesQuerySchema,
    async run({ workspaceId, query: { findingId, receiver, limit } }): Promise<Outcome<DeliveriesAnswer>> {
      const all = await queryDirectory(deps.lastAttempts(workspaceId, LISTED_ATTEMPTS_MAX))
      const states = new Map<string, DeliveryState>()
      for (const attempt of all) {
        if (!states.has(attempt.deliveryId)) states.set(attempt.deliveryId, stateAfter(attempt))
      }
      const attempts = all
        .filter(({ events }) => findingId === undefined || events.some(event => event.findingId === findingId))
        .filter(({ receiverName }) => receiver === undefined || receiverName === receiver)
        .slice(0, limit)
        .map(attempt => ({ ...attempt, state: states.get(attempt.deliveryId) ?? stateAfter(attempt) }))
      return { ok: true, value: { attempts } }
    },
  })
}

/** Returns the state of a delivery after its last attempt. */
function stateAfter({ result, nextAttemptAt }: Attempt): DeliveryState {
  if (result === 'delivered') return 'delivered'
  if (nextAttemptAt !== undefined) return 'waiting'
  return result === 'failed' ? 'parked' : 'ended'
}

function readDeliveryRoute(deps: DeliveryRoutesDeps): Route {
  return guardedRoute(deps, readDelivery, {
    resource: DELIVERY,
    async run({ workspaceId, param }): Promise<Outcome<DeliveryAnswer>> {
      const value = await findDelivery(deps, workspaceId, param('deliveryId'))
      return value === undefined ? NOT_FOUND : { ok: true, value }
    },
  })
}

function replayDeliveryRoute({ deliveryQueue, ...deps }: DeliveryRoutesDeps): Route {
  return creationRoute(deps, replayDelivery, {
    resource: DELIVERY,
    body: replayDeliverySchema,
    reply: okReply,
    async create({ caller: { workspaceId }, param }): Promise<Outcome<DeliveryAnswer>> {
      const id = param('deliveryId')
      const before = await findDelivery({ ...deps, deliveryQueue }, workspaceId, id)
      if (before === undefined) return NOT_FOUND
      if (before.state === 'delivered') return IS_DELIVERED
      if (before.events.length === 0) return NOT_KEPT
      await queryDirectory(deliveryQueue.replay(workspaceId, id, deps.now()))
      const value = await findDelivery({ ...deps, deliveryQueue }, workspaceId, id)
      return value === undefined ? NOT_KEPT : { ok: true, value }
    },
  })
}

/** Returns a delivery of a workspace whose message or attempts are kept. */
async function findDelivery(
  { deliveryQueue, directory, lastAttempts }: Pick<DeliveryRoutesDeps, 'deliveryQueue' | 'directory' | 'lastAttempts'>,
  workspaceId: string,
  deliveryId: string,
): Promise<DeliveryAnswer | undefined> {
  const [kept, all, alerts] = await queryDirectory(
    Promise.all([
      deliveryQueue.find(workspaceId, deliveryId),
      lastAttempts(workspaceId, LISTED_ATTEMPTS_MAX),
      directory.alerts(workspaceId),
    ]),
  )
  const own = all.filter(attempt => attempt.deliveryId === deliveryId)
  const [last] = own
  const named = kept?.delivery ?? last
  if (named === undefined) return undefined
  const { receiverId, ruleName } = named
  const receiverName = alerts?.receivers.find(({ id }) => id === receiverId)?.name ?? last?.receiverName ?? receiverId
  const state = stateOf(kept, last && stateAfter(last))
  return {
    ...{ deliveryId, receiverId, receiverName, ruleName, state },
    events: [...(kept?.delivery.events ?? [])],
    attempts: own.map(attempt => ({ ...attempt, state })),
    ...(kept?.nextMs !== undefined && { nextAttemptAt: new Date(kept.nextMs).toISOString() }),
  }
}

type Kept = Awaited<ReturnType<DeliveryQueue['find']>>

function stateOf(kept: Kept, afterLast: DeliveryState | undefined): DeliveryState {
  // One whose message is gone is not attempted again.
  if (kept === undefined) return afterLast === undefined || afterLast === 'waiting' ? 'ended' : afterLast
  if (kept.state === 'failed') return afterLast === 'ended' ? 'ended' : 'parked'
  return kept.state
}
