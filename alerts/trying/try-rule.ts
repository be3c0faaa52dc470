import { type ClickHouseClient, isClickHouseCode, OVER_LIMIT_CODES } from '../../clickhouse/client.ts'
import type { CalledEvent } from '../../schemas/http/alerts/events.ts'
import { TRIED_CALLS_MAX, type Trial } from '../../schemas/http/alerts/trial.ts'
import type { AlertRule, CalledKind, Occasion, Receiver } from '../../schemas/records/alerts.ts'
import type { FindingWork } from '../../schemas/records/finding-work.ts'
import { DAY_MS } from '../../schemas/units.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { eventOf, measuredEventOf } from '../calling/event-of.ts'
import { calledFor } from '../calling/matching-rules.ts'
import { MEASURES } from '../measuring/measures.ts'
import { messageOf } from '../messages/message.ts'
import { countMessages } from './count-messages.ts'
import { describePast } from './describe-past.ts'
import { type FollowPast, followPast } from './follow-past.ts'
import { CHANGED_MAX, pastChanges } from './past-changes.ts'
import { CREATED_MAX, type PastOccasion, type PastOf, pastCreated, pastReturned } from './past-findings.ts'

/** Stores in which the past is. */
export interface TryDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'allFindingWork' | 'findingActivity' | 'findingMerges' | 'surface' | 'surfaces'>
  /** Follows the expression of a rule over metrics. */
  readonly followMetric: FollowPast
}

/** A rule that is tried on the seven days before a time, Unix ms. */
interface TriedRule {
  readonly workspaceId: string
  readonly rule: AlertRule
  readonly toMs: number
}

const DAYS = 7
/** Links of events are not shown. */
const CONSOLE_URL = 'https://console.invalid/'

/** Finds the events of seven days for which a rule would have called, and counts the messages about them. It changes nothing. */
export async function tryRule(
  deps: TryDeps,
  { workspaceId, rule, toMs }: TriedRule,
  signal: AbortSignal,
): Promise<Trial> {
  const merges = await deps.directory.findingMerges(workspaceId)
  const of = { workspaceId, merges, fromMs: toMs - DAYS * DAY_MS, toMs }
  const [found, measured] = [await findPast(deps, of, rule, signal), await measurePast(deps, of, rule, signal)]
  const occasions = [...found.occasions, ...measured.occasions]
  const events = (await eventsOf(deps, of, { occasions, rule }, signal)).toSorted(
    (a, b) => Date.parse(a.timestamp) - Date.parse(b.timestamp),
  )
  const times = events.map(({ timestamp }) => Date.parse(timestamp))
  const latest = events.slice(-TRIED_CALLS_MAX).reverse()
  return {
    from: new Date(of.fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    events: events.length,
    messages: countMessages(rule, times),
    calls: latest.map(event => presentCall(event, rule)),
    unknown: [...found.unknown, ...measured.unknown],
  }
}

/** An occasion of the past, and the occurrence that describes its finding, if it is about one. */
interface Tried {
  readonly occasion: Occasion
  readonly place: PastOccasion['place']
}

interface Past {
  readonly occasions: readonly Tried[]
  readonly unknown: Trial['unknown']
}

const has = ({ kinds }: AlertRule, ...some: readonly CalledKind[]) => some.some(kind => kinds.includes(kind))

/** Finds what happened to findings. That a member resolved one closes what rules for new and returning findings have opened. */
async function findPast(deps: TryDeps, of: PastOf, rule: AlertRule, signal: AbortSignal): Promise<Past> {
  const { clickhouse, directory } = deps
  const isOfMembers = has(rule, 'finding.changed', 'finding.commented')
  const isReturning = has(rule, 'finding.regressed', 'finding.unignored')
  const isOpening = isReturning || has(rule, 'finding.created')
  const works = isOfMembers || isOpening ? await allWork(deps, of.workspaceId, signal) : []
  const [created, returned, changes] = await Promise.all([
    has(rule, 'finding.created') ? pastCreated({ clickhouse }, of, signal) : NONE,
    isReturning ? pastReturned({ clickhouse }, of, works, signal) : [],
    isOfMembers || isOpening ? pastChanges(directory, of, works, signal) : NONE,
  ])
  const changed = (['finding.changed', 'finding.commented'] as const).filter(kind => has(rule, kind))
  const cut = (kind: CalledKind, reason: string) => ({ kind, reason })
  return {
    occasions: [...created.occasions, ...returned, ...changes.occasions],
    unknown: [
      ...(created.isCut ? [cut('finding.created', `Only the latest ${CREATED_MAX} new findings are counted.`)] : []),
      ...(changes.isCut
        ? changed.map(kind => cut(kind, `Only the ${CHANGED_MAX} findings that changed last count.`))
        : []),
    ],
  }
}

const NONE = { occasions: [], isCut: false } as const

async function allWork({ directory }: TryDeps, workspaceId: string, signal: AbortSignal): Promise<FindingWork[]> {
  const works: FindingWork[] = []
  for await (const work of directory.allFindingWork(workspaceId)) {
    signal.throwIfAborted()
    works.push(work)
  }
  return works
}

/** Measures one kind after the other, so that a trial has one query at a time. */
async function measurePast(deps: TryDeps, of: PastOf, rule: AlertRule, signal: AbortSignal): Promise<Past> {
  const past: { occasions: Tried[]; unknown: Trial['unknown'] } = { occasions: [], unknown: [] }
  const { clickhouse, directory, followMetric } = deps
  const { workspaceId, fromMs, toMs } = of
  for (const kind of new Set(rule.kinds)) {
    const measure = MEASURES[kind]
    if (measure === undefined) continue
    const measured = { workspaceId, rule, kind, fromMs, toMs }
    const sources = { clickhouse, directory, settledMs: undefined }
    try {
      const occasions =
        kind === 'metric.threshold'
          ? await followMetric(measured, signal)
          : await followPast(measure, sources, measured, signal)
      past.occasions.push(...occasions.map(occasion => ({ occasion, place: undefined })))
    } catch (error) {
      past.unknown.push({ kind, reason: reasonOf(error) })
    }
  }
  return past
}

/** Returns why a kind cannot be measured over seven days. Throws an error that may pass. */
function reasonOf(error: unknown): string {
  if (error instanceof PermanentError) return error.message
  if (Object.values(OVER_LIMIT_CODES).some(code => isClickHouseCode(error, code))) {
    return 'Seven days have more data than one request may read.'
  }
  throw error
}

/** Returns the events that the rule calls for. */
async function eventsOf(
  { clickhouse, directory }: TryDeps,
  of: PastOf,
  { occasions, rule }: { readonly occasions: readonly Tried[]; readonly rule: AlertRule },
  signal: AbortSignal,
): Promise<CalledEvent[]> {
  const ofFindings = occasions.filter((one): one is PastOccasion => 'findingId' in one.occasion)
  const withPeople = rule.minPeople !== undefined
  const past = await describePast(clickhouse, of, { occasions: ofFindings, withPeople }, signal)
  const others = occasions.flatMap(({ occasion }) => ('findingId' in occasion ? [] : [occasion]))
  const ids = [...past.map(({ described }) => described.surfaceId), ...others.map(({ surfaceId = '' }) => surfaceId)]
  const surfaces = new Map(
    await Promise.all([...new Set(ids)].map(async id => [id, await directory.surface(of.workspaceId, id)] as const)),
  )
  const namesOf = (id: string) => ({
    consoleUrl: CONSOLE_URL,
    surface: id === '' ? undefined : { id, name: surfaces.get(id)?.name ?? '' },
    people: new Map<string, string>(),
  })
  const called = [rule, receiverOf(rule)] as const
  return [
    ...past.map(({ occasion, described }) => ({
      event: eventOf(occasion, described, namesOf(described.surfaceId)),
      ruleName: occasion.ruleName,
    })),
    ...others.map(occasion => ({
      event: measuredEventOf(occasion, namesOf(occasion.surfaceId ?? '')),
      ruleName: occasion.ruleName,
    })),
  ].flatMap(({ event, ruleName }) => (isCalled(event, called, ruleName) ? [event] : []))
}

function isCalled(event: CalledEvent, [rule, receiver]: readonly [AlertRule, Receiver], ruleName?: string): boolean {
  return calledFor(event, { receivers: [receiver], rules: [rule] }, ruleName).length > 0
}

/** Returns a receiver that a rule calls, whichever it names. */
function receiverOf({ receivers }: AlertRule): Receiver {
  const createdAt = new Date(0).toISOString()
  return { id: 'rcv_tried', name: receivers?.[0] ?? 'tried', channel: 'slack', address: '', sealed: '', createdAt }
}

function presentCall(event: CalledEvent, { name }: AlertRule): Trial['calls'][number] {
  const { data, timestamp, type } = event
  const { measured } = data
  return {
    at: timestamp,
    kind: type,
    title: messageOf([event], { id: name, name }).title,
    ...('finding' in data && { findingId: data.finding.id }),
    resolved: data.resolved,
    ...(measured !== undefined && { value: measured.value, unit: measured.unit }),
  }
}
