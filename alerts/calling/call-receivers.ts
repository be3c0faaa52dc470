import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type DescribedFinding, describeFinding } from '../../findings/describe-finding.ts'
import type { FindingEvent } from '../../schemas/http/alerts/events.ts'
import type { Occasion } from '../../schemas/records/alerts.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { removeOccasions, type WaitingOccasion, waitingOccasions } from '../../shared/directory/occasions.ts'
import { base32 } from '../../shared/ids/base32.ts'
import type { DeliveryJob, DeliveryQueue } from './delivery-queue.ts'
import { eventOf } from './event-of.ts'
import { type Called, calledFor } from './matching-rules.ts'
import { isOneByOne } from './targets.ts'

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
}

const AT_ONCE = 100
/** Most events of one message. */
const EVENTS_MAX = 50
const TIMEOUT_MS = 30_000

/**
 * Queues the deliveries of the occasions that wait, and only then removes these. After a crash between the two, the same deliveries
 * are added again, with the same ids. An occasion of which nothing is retained any more calls for nothing.
 */
export async function callReceivers(deps: CallDeps): Promise<void> {
  for (;;) {
    const waiting = await waitingOccasions(deps.redis, AT_ONCE)
    if (waiting.length === 0) return
    await deps.assertElected()
    for (const [workspaceId, own] of Map.groupBy(waiting, ({ occasion }) => occasion.workspaceId)) {
      await deps.queue.add(await deliveriesOf(deps, workspaceId, own))
      await removeOccasions(deps.redis, own)
    }
  }
}

interface Call extends Called {
  readonly event: FindingEvent
}

async function deliveriesOf(
  deps: CallDeps,
  workspaceId: string,
  waiting: readonly WaitingOccasion[],
): Promise<DeliveryJob[]> {
  const stored = await deps.directory.alerts(workspaceId)
  if (stored === undefined || stored.receivers.every(({ disabled }) => disabled)) return []
  const alerts = { receivers: stored.receivers, rules: stored.rules }
  const events = createEvents(deps, workspaceId)
  const calls: Call[] = []
  for (const { occasion } of waiting) {
    const event = await events(occasion)
    if (event) calls.push(...calledFor(event, alerts).map(called => ({ ...called, event })))
  }
  const grouped = Map.groupBy(calls, ({ receiver, rule, event }) =>
    JSON.stringify([receiver.id, rule.name, isOneByOne(receiver.channel) ? event.data.id : '']),
  )
  return [...grouped.values()].flatMap(some => messagesOf(workspaceId, some))
}

/** Returns the messages about calls of one receiver by one rule. */
function messagesOf(workspaceId: string, calls: readonly Call[]): DeliveryJob[] {
  const jobs: DeliveryJob[] = []
  for (let at = 0; at < calls.length; at += EVENTS_MAX) {
    const some = calls.slice(at, at + EVENTS_MAX)
    const [{ receiver, rule }] = some as [Call]
    const events = some.map(({ event }) => event) as [FindingEvent, ...FindingEvent[]]
    const digest = createHash('sha256')
      .update(JSON.stringify([receiver.id, ...events.map(({ data }) => data.id)]))
      .digest()
    // A webhook has the id of its event, so that its receiver knows a repetition.
    const id = isOneByOne(receiver.channel) ? `${events[0].data.id}_${receiver.id}` : `msg_${base32(digest, 26)}`
    jobs.push({ version: 1, id, workspaceId, receiverId: receiver.id, ruleName: rule.name, events })
  }
  return jobs
}

/** Returns a function that makes the events of a workspace. A finding of many occasions is read once. */
function createEvents({ clickhouse, directory, consoleUrl }: CallDeps, workspaceId: string) {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const described = new Map<string, Promise<DescribedFinding | undefined>>()
  const merges = directory.findingMerges(workspaceId)
  const describe = (findingId: string) => {
    const known =
      described.get(findingId) ??
      merges.then(all => describeFinding(clickhouse, { workspaceId, findingId }, all, signal))
    described.set(findingId, known)
    return known
  }
  return async (occasion: Occasion): Promise<FindingEvent | undefined> => {
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
