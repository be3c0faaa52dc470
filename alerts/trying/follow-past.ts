import type { AlertRule, CalledKind, Occasion } from '../../schemas/records/alerts.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import { measuredOccasions } from '../measuring/measured-occasions.ts'
import { holdMsOf, type Instants, type Reading } from '../measuring/reading.ts'
import { transitions } from '../measuring/transitions.ts'

/** A kind of a rule that is measured, and a time of the past. Unix ms. */
export interface MeasuredPast {
  readonly workspaceId: string
  readonly rule: AlertRule
  readonly kind: CalledKind
  readonly fromMs: number
  readonly toMs: number
}

/** Returns the occasions of a time in their order, the latest 2,000. */
export type FollowPast = (of: MeasuredPast, signal: AbortSignal) => Promise<Occasion[]>

/** The past is measured at each fifth minute: a minute each would cost five times as much. */
const LEAST_STEP_MS = 5 * MINUTE_MS
/** A value of a long time changes slowly, and reads each row as many times as there are instants in that time. */
const INSTANTS_OF_WINDOW = 4
const OCCASIONS_MAX = 2_000

/** Returns the time between two instants at which a kind of a rule is measured. */
function stepMsOf({ errors, latency, spreading }: AlertRule, kind: CalledKind): number {
  const windows: Partial<Record<CalledKind, { readonly minutes: number } | undefined>> = {
    'service.errors': errors,
    'service.latency': latency,
    'finding.spreading': spreading,
  }
  const windowMs = (windows[kind]?.minutes ?? 0) * MINUTE_MS
  return Math.max(1, Math.floor(windowMs / INSTANTS_OF_WINDOW / LEAST_STEP_MS)) * LEAST_STEP_MS
}

/** Measures the past of a rule, and follows it as the watcher does, from nothing that is known on. */
export async function followPast<D>(
  measure: (
    deps: D,
    of: { readonly workspaceId: string; readonly rule: AlertRule; readonly instants: Instants },
    signal: AbortSignal,
  ) => Promise<Reading[]>,
  deps: D,
  { workspaceId, rule, kind, fromMs, toMs }: MeasuredPast,
  signal: AbortSignal,
): Promise<Occasion[]> {
  const stepMs = stepMsOf(rule, kind)
  const stepBefore = (ms: number) => Math.floor(ms / stepMs) * stepMs
  const instants = { fromMs: stepBefore(fromMs), toMs: stepBefore(toMs), stepMs }
  const readings = await measure(deps, { workspaceId, rule, instants }, signal)
  const changes = transitions([], readings, instants, holdMsOf(rule, kind))
  const occasions = measuredOccasions({ workspaceId, rule, kind }, changes)
  return occasions.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at)).slice(-OCCASIONS_MAX)
}
