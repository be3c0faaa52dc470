import { DelayedError, type Job, UnrecoverableError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import type { Alerts, Attempt, Receiver } from '../../schemas/records/alerts.ts'
import { SECOND_MS } from '../../schemas/units.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { describeError, errorFields, PermanentError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { DeliveryOutcome } from '../delivery/outcome.ts'
import { nextAttemptAtMs } from '../delivery/retry-table.ts'
import { send } from '../delivery/send.ts'
import { keepAttempt } from './attempts.ts'
import { DELIVERIES, DELIVERIES_PREFIX, type DeliveryJob, deliveryJobSchema } from './delivery-queue.ts'
import { OrderOfFindings } from './order-of-findings.ts'
import type { Sending } from './send-deps.ts'
import { deliveryTo, openTarget } from './targets.ts'

/** Dependencies of sending deliveries. */
export interface DeliverDeps extends Sending {
  /** Connections to the Redis of the directory: one for records, and one on which BullMQ waits for jobs. */
  readonly redis: Redis
  readonly blocking: Redis
  readonly directory: Pick<Directory, 'alerts' | 'replaceAlerts'>
  readonly logger: Logger
  /** After this time without a sign of its process, another one takes a delivery over. Looked at in this interval. */
  readonly lockMs: number
  readonly stalledCheckMs: number
  /** Runs when a delivery is taken, and when it is left. */
  readonly onActive: (change: 1 | -1) => void
  readonly onAttempt: (result: Attempt['result']) => void
  /** When a delivery that failed is repeated. That of `retry-table.ts` by default. */
  readonly nextAttemptAtMs?: typeof nextAttemptAtMs
  /** How long later events of a finding wait. */
  readonly orderKeptMs?: number
}

/**
 * Deliveries in progress in a process, and how many of them a workspace and a receiver may have: a slow receiver delays no other
 * one, and slow ones of a workspace no other workspace.
 */
const AT_ONCE = 128
const OF_WORKSPACE = 16
const OF_RECEIVER = 4
/** A delivery whose turn it is not looks again after this time, and a workspace has one of them look in each slot. */
const TURN_MS = SECOND_MS
const SLOT_MS = 25
const NOT_ACCEPTED = 'it was not accepted'

/** An attempt that failed, and when the next one is due. */
class DeliveryFailed extends Error {
  override readonly name = 'DeliveryFailed'
  readonly nextMs: number
  constructor(reason: string, nextMs: number) {
    super(reason)
    this.nextMs = nextMs
  }
}

/**
 * Sends deliveries as they are due, until it is stopped. One that fails is repeated, and is parked after the last attempt. What is
 * not accepted is among the failed jobs of BullMQ in the end, from which it can be replayed.
 */
export function startDeliveries(deps: DeliverDeps): { stop(): Promise<void> } {
  const deliverer = new Deliverer(deps)
  const worker = new Worker<DeliveryJob>(DELIVERIES, (job, token = '') => deliverer.deliver(job, token), {
    connection: deps.blocking,
    prefix: DELIVERIES_PREFIX,
    concurrency: AT_ONCE,
    lockDuration: deps.lockMs,
    stalledInterval: deps.stalledCheckMs,
    // A process that is killed again and again must not end a delivery.
    maxStalledCount: 1_000,
    settings: {
      backoffStrategy(attempts, _type, error) {
        const failedAtMs = deps.now()
        const nextMs =
          error instanceof DeliveryFailed ? error.nextMs : deliverer.nextAttemptAtMs({ attempts, failedAtMs })
        return Math.max(0, (nextMs ?? failedAtMs) - failedAtMs)
      },
    },
  })
  worker.on('error', error => deps.logger.warn(errorFields(error), 'the queue of deliveries failed'))
  return { stop: () => worker.close() }
}

class Deliverer {
  readonly #deps: DeliverDeps
  readonly #order: OrderOfFindings
  /** Deliveries in progress by workspace, and by receiver. */
  readonly #active = new Map<string, number>()
  /** The last slot of each workspace, in Unix ms. */
  readonly #slots = new Map<string, number>()
  readonly nextAttemptAtMs: typeof nextAttemptAtMs

  constructor(deps: DeliverDeps) {
    this.#deps = deps
    this.#order = new OrderOfFindings(deps.redis, deps.orderKeptMs)
    this.nextAttemptAtMs = deps.nextAttemptAtMs ?? nextAttemptAtMs
  }

  /** Makes an attempt. Throws if the delivery is to be repeated, or is parked. */
  async deliver(job: Job<DeliveryJob>, token: string): Promise<void> {
    const { workspaceId, receiverId } = job.data
    const activeOf = (id: string) => this.#active.get(id) ?? 0
    const isFull = activeOf(workspaceId) >= OF_WORKSPACE || activeOf(receiverId) >= OF_RECEIVER
    if (isFull) return this.#later(job, token)
    this.#count(workspaceId, 1)
    this.#count(receiverId, 1)
    this.#deps.onActive(1)
    try {
      const delivery = deliveryJobSchema.parse(job.data)
      if (!(await this.#order.isFirst(delivery, this.#deps.now()))) return await this.#later(job, token)
      await this.#attempt(job, delivery)
    } finally {
      this.#deps.onActive(-1)
      this.#count(workspaceId, -1)
      this.#count(receiverId, -1)
    }
  }

  #count(id: string, change: 1 | -1): void {
    const active = (this.#active.get(id) ?? 0) + change
    if (active === 0) this.#active.delete(id)
    else this.#active.set(id, active)
  }

  /** Lets a delivery look again later. Many of one workspace look one after the other. */
  async #later(job: Job<DeliveryJob>, token: string): Promise<never> {
    const nowMs = this.#deps.now()
    for (const [workspaceId, atMs] of this.#slots) if (atMs < nowMs) this.#slots.delete(workspaceId)
    const { workspaceId } = job.data
    const atMs = Math.max(nowMs + TURN_MS, (this.#slots.get(workspaceId) ?? 0) + SLOT_MS)
    this.#slots.set(workspaceId, atMs)
    await job.updateProgress(atMs)
    await job.moveToDelayed(atMs, token)
    throw new DelayedError()
  }

  async #attempt(job: Job<DeliveryJob>, delivery: DeliveryJob): Promise<void> {
    const { workspaceId, receiverId } = delivery
    const alerts = await this.#deps.directory.alerts(workspaceId)
    const receiver = alerts?.receivers.find(({ id }) => id === receiverId)
    if (alerts === undefined || receiver === undefined || receiver.disabled) {
      const reason = receiver === undefined ? 'the receiver was removed' : 'the receiver is disabled'
      return this.#end(job, delivery, receiver, { kind: 'refused', reason, durationMs: 0 })
    }
    const outcome = await this.#send(delivery, receiver)
    if (outcome.kind === 'failed') {
      const failed = {
        attempts: job.attemptsMade + 1,
        failedAtMs: this.#deps.now(),
        retryAfterMs: outcome.retryAfterMs,
      }
      const nextMs = this.nextAttemptAtMs(failed)
      if (nextMs !== undefined) {
        await this.#keep(job, delivery, receiver, outcome, nextMs)
        await job.updateProgress(nextMs)
        throw new DeliveryFailed(outcome.reason ?? NOT_ACCEPTED, nextMs)
      }
    }
    if (outcome.kind === 'gone') await this.#disable(workspaceId, receiver, outcome.reason ?? 'it is gone')
    await this.#end(job, delivery, receiver, outcome)
  }

  /** Ends a delivery: it was accepted, or is not repeated. */
  async #end(
    job: Job<DeliveryJob>,
    delivery: DeliveryJob,
    receiver: Receiver | undefined,
    outcome: DeliveryOutcome,
  ): Promise<void> {
    await this.#keep(job, delivery, receiver, outcome, undefined)
    await this.#order.leave(delivery)
    if (outcome.kind !== 'delivered') throw new UnrecoverableError(outcome.reason ?? NOT_ACCEPTED)
  }

  async #send(delivery: DeliveryJob, receiver: Receiver): Promise<DeliveryOutcome> {
    const { id, events, ruleName, workspaceId } = delivery
    try {
      const target = openTarget(this.#deps.sealing, workspaceId, receiver)
      const rule = { id: ruleName, name: ruleName }
      return await send(
        this.#deps,
        deliveryTo(target, { id, events, rule, actLink: this.#actLinkOf(workspaceId, receiver) }),
      )
    } catch (error) {
      if (!(error instanceof PermanentError)) throw error
      return { kind: 'refused', reason: describeError(error), durationMs: 0 }
    }
  }

  #actLinkOf(workspaceId: string, { id: receiverId, actions = true }: Receiver) {
    const { actLinks, now } = this.#deps
    if (!actions) return undefined
    return (findingId: string) => actLinks.linkTo({ workspaceId, findingId, receiverId }, now())
  }

  async #keep(
    job: Job<DeliveryJob>,
    { id: deliveryId, workspaceId, receiverId, ruleName, events }: DeliveryJob,
    receiver: Receiver | undefined,
    { kind: result, status, reason, answer, durationMs }: DeliveryOutcome,
    nextMs: number | undefined,
  ): Promise<void> {
    this.#deps.onAttempt(result)
    const at = new Date(this.#deps.now()).toISOString()
    const receiverName = receiver?.name ?? receiverId
    const attempt = job.attemptsMade + 1
    const named = events.map(({ type, data }) => ({
      ...{ id: data.id, type },
      ...('finding' in data && { findingId: data.finding.id }),
    }))
    await keepAttempt(this.#deps.redis, workspaceId, {
      ...{ deliveryId, at, receiverId, receiverName, ruleName, events: named, attempt, result, durationMs },
      ...(status !== undefined && { status }),
      ...(reason !== undefined && { reason }),
      ...(answer !== undefined && { answer }),
      ...(nextMs !== undefined && { nextAttemptAt: new Date(nextMs).toISOString() }),
    })
  }

  /** Disables a receiver, unless its workspace has changed it meanwhile. */
  async #disable(workspaceId: string, { id }: Receiver, reason: string): Promise<void> {
    for (let current: Alerts | number | undefined = 0; typeof current === 'number'; ) {
      const alerts = await this.#deps.directory.alerts(workspaceId)
      if (alerts === undefined) return
      const at = new Date(this.#deps.now()).toISOString()
      const receivers = alerts.receivers.map(receiver =>
        receiver.id === id ? { ...receiver, disabled: { at, reason } } : receiver,
      )
      const { revision, rules } = alerts
      const author = { by: null, now: this.#deps.now() }
      current = await this.#deps.directory.replaceAlerts({ workspaceId, revision, receivers, rules }, author)
    }
  }
}
