import type { Redis } from 'ioredis'
import { clickHouseCode } from '../../clickhouse/client.ts'
import { SELDOM_KINDS, type SeldomKind, selectActive } from '../../clickhouse/queries/alerts/select-active.ts'
import type { CalledKind } from '../../schemas/records/alerts.ts'
import { MINUTE_MS, SECOND_MS } from '../../schemas/units.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { writeOccasions } from '../../shared/directory/occasions.ts'
import { errorFields, errorMessage, PermanentError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { measuredOccasions } from './measured-occasions.ts'
import { holdMsOf, type MeasureDeps, SUBJECTS_MAX } from './reading.ts'
import { forgetStates, loadStates, type RuleState, replaceState, type StoredState } from './rule-states.ts'
import { transitions } from './transitions.ts'

/** A surface, and the times before which what it was sent is settled. Unix ms of Redis. */
export interface MeasuredSurface {
  readonly workspaceId: string
  readonly surfaceId: string
  /** Exceptions of spans and log records. */
  readonly exceptionsMs: number
  /** Failed spans without an exception. Undefined if that is not known yet. */
  readonly failuresMs: number | undefined
  /** The numbers of spans by service. */
  readonly spanCountsMs: number
  readonly metricsMs: number
  /** Everything. */
  readonly allMs: number
}

/** Dependencies of measuring. */
interface WatchMeasuresDeps {
  readonly clickhouse: MeasureDeps['clickhouse']
  /** Redis of the directory. */
  readonly redis: Redis
  readonly directory: MeasureDeps['directory'] & Pick<Directory, 'alerts' | 'alertingWorkspaces' | 'surfaceIds'>
  readonly settled: (
    surfaces: readonly { workspaceId: string; surfaceId: string }[],
  ) => Promise<{ readonly readAtMs: number; readonly surfaces: readonly MeasuredSurface[] }>
  readonly assertElected: () => Promise<void>
  /** The time of Redis in Unix ms. */
  readonly nowMs: () => Promise<number>
  readonly logger: Logger
  /** The last instant at which something could not have held, of what this process has looked at. By workspace and state. */
  readonly quiet: Map<string, number>
}

/** Longest time that an instant waits until everything before it is stored. */
const WAITS_MS = 5 * MINUTE_MS
/** Instants that were missed for longer are left out. */
const CATCHES_UP_MS = 10 * MINUTE_MS
/** Nothing that arrived earlier can meet a condition of `SELDOM_KINDS` at an instant that is measured. */
const ACTIVE_MS = 30 * MINUTE_MS
const QUIET_MAX = 100_000
/** Time between two looks, while an instant waits for what is not stored, and while nothing is due. */
const [WAITING_LOOK_MS, LOOK_MS] = [5 * SECOND_MS, 15 * SECOND_MS]
/** Spans and points of metrics are sent some seconds after the time that they state. */
const SENT_AFTER_MS = 30 * SECOND_MS
const TIMEOUT_MS = 30_000
const WORKSPACES_AT_ONCE = 4
/** Subjects come and go within the five minutes after which a condition ends. */
const CONDITIONS_MAX = 2 * SUBJECTS_MAX
const REASON_CHARACTERS = 300

/** A workspace with a rule that may be due, and what is settled of its surfaces. */
interface DueWorkspace {
  readonly workspaceId: string
  readonly states: readonly StoredState[]
  readonly readAtMs: number
  readonly surfaces: readonly MeasuredSurface[]
}

/**
 * Measures what rules of workspaces with receivers measure: at each whole minute of Redis' time before which everything is stored,
 * or that has waited for five minutes. A state, its instant and its occasions are recorded in one step, so that a crash repeats an
 * instant with the same ids, or has recorded it. One query finds the workspaces of which some kinds can be at all: those of the
 * others are neither measured nor recorded. Returns the time until the next look in ms.
 */
export async function watchMeasures(deps: WatchMeasuresDeps): Promise<number> {
  if (deps.quiet.size > QUIET_MAX) deps.quiet.clear()
  const due = await dueWorkspaces(deps)
  const active = createActive(deps)
  const options = { concurrency: WORKSPACES_AT_ONCE, stopOnFailure: true }
  let isWaiting = false
  await forEachConcurrently(due, options, async workspace => {
    if (await watchWorkspace(deps, workspace, active)) isWaiting = true
  })
  return isWaiting ? WAITING_LOOK_MS : LOOK_MS
}

type IsActive = (kind: CalledKind, workspaceId: string, nowMs: number) => Promise<boolean>

/** Returns a function that states whether a kind can be of a workspace. It asks ClickHouse once, for all of them. */
function createActive({ clickhouse }: WatchMeasuresDeps): IsActive {
  let read: ReturnType<typeof selectActive> | undefined
  return async (kind, workspaceId, nowMs) => {
    if (!isSeldom(kind)) return true
    read ??= selectActive(clickhouse, nowMs - ACTIVE_MS, AbortSignal.timeout(TIMEOUT_MS))
    return (await read).get(kind)?.has(workspaceId) ?? false
  }
}

function isSeldom(kind: CalledKind): kind is SeldomKind {
  return (SELDOM_KINDS as readonly CalledKind[]).includes(kind)
}

async function dueWorkspaces(deps: WatchMeasuresDeps): Promise<DueWorkspace[]> {
  const nowMs = await deps.nowMs()
  const due: { workspaceId: string; states: StoredState[] }[] = []
  for (const workspaceId of await deps.directory.alertingWorkspaces()) {
    const rules = (await deps.directory.alerts(workspaceId))?.rules ?? []
    const { current, removed } = await loadStates(deps.redis, workspaceId, rules)
    await forgetStates(deps.redis, workspaceId, removed)
    const states = current.filter(one => mayBeDue(one, deps.quiet.get(quietKey(workspaceId, one)), nowMs))
    if (states.length > 0) due.push({ workspaceId, states })
  }
  if (due.length === 0) return []
  const asked: { workspaceId: string; surfaceId: string }[] = []
  for (const { workspaceId } of due) {
    for (const surfaceId of await deps.directory.surfaceIds(workspaceId)) asked.push({ workspaceId, surfaceId })
  }
  const { readAtMs, surfaces } = await deps.settled(asked)
  const own = Map.groupBy(surfaces, ({ workspaceId }) => workspaceId)
  return due.map(one => ({ ...one, readAtMs, surfaces: own.get(one.workspaceId) ?? [] }))
}

const quietKey = (workspaceId: string, { field }: StoredState) => `${workspaceId} ${field}`

/** One that fails is tried once a minute. */
function mayBeDue({ state }: StoredState, quietMs: number | undefined, nowMs: number): boolean {
  return nowMs - Math.max(state?.untilMs ?? 0, state?.failing?.atMs ?? 0, quietMs ?? 0) >= MINUTE_MS
}

/** Returns whether an instant waits for what is not stored yet. */
async function watchWorkspace(deps: WatchMeasuresDeps, due: DueWorkspace, isActive: IsActive): Promise<boolean> {
  const { workspaceId, states, readAtMs, surfaces } = due
  const settledMs = async () => new Map(surfaces.map(({ surfaceId, allMs }) => [surfaceId, allMs]))
  const { clickhouse, directory } = deps
  let isWaiting = false
  for (const stored of states) {
    const toMs = lastInstant(stored.kind, readAtMs, surfaces)
    const before = stored.state ?? { untilMs: toMs - MINUTE_MS, conditions: [] }
    const key = quietKey(workspaceId, stored)
    if (toMs <= Math.max(before.untilMs, deps.quiet.get(key) ?? 0)) {
      isWaiting = true
      continue
    }
    await deps.assertElected()
    const isKnown = before.conditions.length > 0 || before.failing !== undefined
    if (!isKnown && !(await isActive(stored.kind, workspaceId, readAtMs))) {
      deps.quiet.set(key, toMs)
      continue
    }
    const kind = { ...stored, workspaceId, before, toMs }
    try {
      await measureKind(deps, { clickhouse, directory, settledMs }, kind)
    } catch (error) {
      await deps.assertElected()
      const { rule } = stored
      deps.logger.warn(
        { workspaceId, rule: rule.name, ...errorFields(error) },
        'a rule of alerts could not be measured',
      )
      const failing = { sinceMs: before.failing?.sinceMs ?? readAtMs, atMs: readAtMs, reason: reasonOf(error) }
      await replaceState(deps.redis, kind, { ...before, failing })
    }
  }
  return isWaiting
}

/** Returns the last instant at which a kind of events can be measured. */
function lastInstant(kind: CalledKind, nowMs: number, surfaces: readonly MeasuredSurface[]): number {
  const settledMs = (of: (surface: MeasuredSurface) => number) => Math.min(nowMs, ...surfaces.map(of))
  const readyMs = () => {
    switch (kind) {
      case 'finding.spiking':
      case 'finding.spreading':
        return settledMs(({ exceptionsMs, failuresMs = 0 }) => Math.min(exceptionsMs, failuresMs))
      case 'service.errors':
      case 'service.latency':
        return settledMs(({ spanCountsMs }) => spanCountsMs) - SENT_AFTER_MS
      case 'metric.threshold':
        return settledMs(({ metricsMs }) => metricsMs) - SENT_AFTER_MS
      case 'surface.silent':
        return settledMs(({ allMs }) => allMs)
      default:
        // What is late must not delay what calls for it.
        return nowMs
    }
  }
  return Math.floor(Math.max(readyMs(), nowMs - WAITS_MS) / MINUTE_MS) * MINUTE_MS
}

interface DueKind extends StoredState {
  readonly workspaceId: string
  readonly before: RuleState
  readonly toMs: number
}

async function measureKind(
  { redis, assertElected }: WatchMeasuresDeps,
  sources: MeasureDeps,
  kind: DueKind,
): Promise<void> {
  const { workspaceId, rule, measure, before, toMs } = kind
  const instants = { fromMs: Math.max(before.untilMs, toMs - CATCHES_UP_MS), toMs, stepMs: MINUTE_MS }
  const readings = await measure(sources, { workspaceId, rule, instants }, AbortSignal.timeout(TIMEOUT_MS))
  const changes = transitions(before.conditions, readings, instants, holdMsOf(rule, kind.kind))
  await assertElected()
  const conditions = changes.state.slice(0, CONDITIONS_MAX)
  // If it has changed, another process that was elected meanwhile has recorded the same occasions.
  await replaceState(redis, kind, { untilMs: toMs, conditions }, writeOccasions(measuredOccasions(kind, changes)))
}

/** Returns why a rule cannot be measured, in words that its workspace may read. */
function reasonOf(error: unknown): string {
  const code = clickHouseCode(error)
  if (code !== undefined) return `the database refused to measure it (code ${code})`
  if (error instanceof PermanentError) return errorMessage(error).slice(0, REASON_CHARACTERS).toWellFormed()
  return 'the database did not answer in time'
}
