import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type DescribedFinding, describeFinding } from '../../findings/describe-finding.ts'
import type { CalledEvent } from '../../schemas/http/alerts/events.ts'
import type { Occasion } from '../../schemas/records/alerts.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { pagesOf } from '../../shared/concurrency/pages.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import {
  removeOccasions,
  type WaitingOccasion,
  waitingOccasions,
  writeOccasions,
} from '../../shared/directory/occasions.ts'
import type { Command } from '../../shared/directory/transaction.ts'
import { base32 } from '../../shared/ids/base32.ts'
import type { DeliveryJob, DeliveryQueue } from './delivery-queue.ts'
import { dueTime } from './due-time.ts'
import { eventOf, measuredEventOf } from './event-of.ts'
import { type CalledBy, EventHolder, type HeldEvents, holdEvents, rememberSent } from './held-events.ts'
import { type Called, calledFor } from './matching-rules.ts'
import { OrderOfFindings } from './order-of-findings.ts'
import { EVENTS_MAX, isOneByOne } from './targets.ts'

/** Dependencies of calling receivers. */
interface CallDeps {
  readonly clickhouse: ClickHouseClient
  /** Redis of the directory. */
  readonly redis: Redis
  readonly directory: Pick<Directory, 'alerts' | 'findingMerges' | 'surface' | 'user'>
  readonly queue: Pick<DeliveryQueue, 'add'>
  /** The address of the console, `https://penstock.example/console/`. */
  readonly consoleUrl: string
  readonly assertElected: () => Promise<void>
  readonly now: () => number
}

const AT_ONCE = 100
/** Findings that are read at the same time. */
const DESCRIBED_AT_ONCE = 8
const TIMEOUT_MS = 30_000

/**
 * Queues the deliveries of the occasions that wait, and only then removes these. After a crash between the two, the same
 * deliveries are added again, with the same ids: the occasions that are looked at together stay the same until they are removed.
 * Events of rules that rest or are quiet are held until they are due. An occasion of which nothing is retained any more calls for
 * nothing. The occasions of a workspace that cannot be described wait behind those of all others. Throws what prevented it.
 */
export async function callReceivers(deps: CallDeps): Promise<void> {
  const holder = new EventHolder(deps.redis)
  for (const held of await holder.due(deps.now())) {
    await deps.assertElected()
    await queueHeld(deps, holder, held)
  }
  for (;;) {
    const waiting = await waitingOccasions(deps.redis, AT_ONCE)
    if (waiting.length === 0) return
    await deps.assertElected()
    const commands: Command[] = []
    const faults: unknown[] = []
    for (const [workspaceId, own] of Map.groupBy(waiting, ({ occasion }) => occasion.workspaceId)) {
      const calls = await callsOf(deps, workspaceId, own).catch(error => {
        faults.push(error)
        commands.push(...writeOccasions(own.map(({ occasion }) => occasion)))
        return []
      })
      for (const call of calls) commands.push(...(await queueOrHold(deps, holder, call)))
    }
    await removeOccasions(deps.redis, waiting, commands)
    if (faults.length > 0) throw faults[0]
  }
}

/** Events by which a rule calls a receiver. */
interface Call extends Called {
  readonly workspaceId: string
  readonly events: readonly CalledEvent[]
}

/** Returns the calls of occasions of a workspace, one for each rule and receiver. */
async function callsOf(deps: CallDeps, workspaceId: string, waiting: readonly WaitingOccasion[]): Promise<Call[]> {
  const alerts = await deps.directory.alerts(workspaceId)
  if (alerts === undefined || alerts.receivers.every(({ disabled }) => disabled)) return []
  const eventOfOccasion = createEvents(deps, workspaceId)
  const calls = new Map<string, Call & { readonly events: CalledEvent[] }>()
  const events: (CalledEvent | undefined)[] = []
  await forEachConcurrently(
    waiting,
    { concurrency: DESCRIBED_AT_ONCE, stopOnFailure: true },
    async ({ occasion }, i) => {
      events[i] = await eventOfOccasion(occasion)
    },
  )
  for (const [i, { occasion }] of waiting.entries()) {
    const event = events[i]
    for (const called of event ? calledFor(event, alerts, occasion.ruleName) : []) {
      const key = JSON.stringify([called.receiver.id, called.rule.name])
      const call = calls.get(key) ?? { ...called, workspaceId, events: [] }
      if (event) call.events.push(event)
      calls.set(key, call)
    }
  }
  return [...calls.values()]
}

const namesOf = ({ workspaceId, receiver, rule }: Omit<Call, 'events'>): CalledBy => ({
  ...{ workspaceId, receiverId: receiver.id, ruleName: rule.name },
})

/** Queues or holds the events of a call. Returns the commands that remember it, in the step that removes the occasions. */
async function queueOrHold(deps: CallDeps, holder: EventHolder, call: Call): Promise<Command[]> {
  const by = namesOf(call)
  const nowMs = deps.now()
  const dueMs = dueTime(call.rule, nowMs, await holder.lastMs(by))
  return dueMs > nowMs ? holdEvents(by, call.events, dueMs) : queueMessages(deps, call)
}

async function queueMessages(deps: CallDeps, call: Call): Promise<Command[]> {
  const messages = messagesOf(call)
  await new OrderOfFindings(deps.redis).join(messages, deps.now())
  await deps.queue.add(messages)
  return call.rule.everyMinutes === undefined ? [] : rememberSent(namesOf(call), deps.now())
}

/** Queues what was held, if its rule and its receiver are still there. A rule that has become quiet holds it longer. */
async function queueHeld(deps: CallDeps, holder: EventHolder, held: HeldEvents): Promise<void> {
  const alerts = await deps.directory.alerts(held.workspaceId)
  const receiver = alerts?.receivers.find(({ id, disabled }) => id === held.receiverId && !disabled)
  const rule = alerts?.rules.find(({ name }) => name === held.ruleName)
  if (receiver && rule && held.events.length > 0) {
    const dueMs = dueTime({ quietHours: rule.quietHours }, deps.now(), undefined)
    if (dueMs > deps.now()) return holder.postpone(held, dueMs)
    const call = { workspaceId: held.workspaceId, receiver, rule, events: held.events }
    return holder.release(held, await queueMessages(deps, call))
  }
  await holder.release(held, [])
}

/** Returns the deliveries of a call: one for each event, or messages about many. */
function messagesOf({ workspaceId, receiver, rule, events }: Call): DeliveryJob[] {
  const atOnce = isOneByOne(receiver.channel) ? 1 : EVENTS_MAX
  return [...pagesOf(events, atOnce)].map(page => {
    const some = page as [CalledEvent, ...CalledEvent[]]
    const ids = some.map(({ data }) => data.id)
    const digest = createHash('sha256')
      .update(JSON.stringify([receiver.id, ...ids]))
      .digest()
    // A webhook has the id of its event, so that its receiver knows a repetition.
    const id = atOnce === 1 ? `${ids[0]}_${receiver.id}` : `msg_${base32(digest, 26)}`
    return { version: 1, id, workspaceId, receiverId: receiver.id, ruleName: rule.name, events: some }
  })
}

/** Returns a function that makes the events of a workspace. A finding of many occasions is read once. */
function createEvents({ clickhouse, directory, consoleUrl }: CallDeps, workspaceId: string) {
  const described = new Map<string, Promise<DescribedFinding | undefined>>()
  let merges: ReturnType<typeof directory.findingMerges> | undefined
  const describe = (findingId: string) => {
    merges ??= directory.findingMerges(workspaceId)
    const known =
      described.get(findingId) ??
      merges.then(all => describeFinding(clickhouse, { workspaceId, findingId }, all, AbortSignal.timeout(TIMEOUT_MS)))
    described.set(findingId, known)
    return known
  }
  return async (occasion: Occasion): Promise<CalledEvent | undefined> => {
    if (!('findingId' in occasion)) {
      const { surfaceId, kind } = occasion
      const surface = surfaceId === undefined ? undefined : await directory.surface(workspaceId, surfaceId)
      // A surface that was deleted is neither silent nor late any more.
      if (surface === undefined && (kind === 'surface.silent' || kind === 'pipeline.late')) return undefined
      return measuredEventOf(occasion, { consoleUrl, surface: surface && { id: surface.id, name: surface.name } })
    }
    const finding = await describe(occasion.findingId)
    if (finding === undefined) return undefined
    const { surfaceId = finding.surfaceId, entry } = occasion
    const surface = await directory.surface(workspaceId, surfaceId)
    const users = [entry?.by?.userId, entry?.assignee].filter(id => id !== undefined)
    const people = await Promise.all(users.map(async id => [id, (await directory.user(id))?.name] as const))
    const names = new Map(people.flatMap(([id, name]) => (name == null ? [] : [[id, name] as const])))
    return eventOf(occasion, finding, {
      consoleUrl,
      surface: surface && { id: surface.id, name: surface.name },
      people: names,
    })
  }
}
