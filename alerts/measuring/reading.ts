import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { Measured } from '../../schemas/http/alerts/events.ts'
import type { AlertRule } from '../../schemas/records/alerts.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import type { Directory } from '../../shared/directory/directory.ts'

/** Instants at which conditions are measured: multiples of `stepMs`, after `fromMs` and until `toMs`. Unix ms. */
export interface Instants {
  readonly fromMs: number
  readonly toMs: number
  /** A multiple of a minute. */
  readonly stepMs: number
}

/** The thing that a reading is of. Fields are absent where the kind of the rule has none. */
export interface Subject {
  readonly findingId?: string | undefined
  readonly surfaceId?: string | undefined
  readonly service?: string | undefined
  readonly environment?: string | undefined
  /** The labels of a series. `measured.what` has to name it too, because events have no other field for it. */
  readonly series?: string | undefined
}

/** A value that meets the condition of a rule at an instant. */
export interface Reading {
  readonly atMs: number
  readonly subject: Subject
  readonly measured: Measured
}

/** Sources of measures. */
export interface MeasureDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingMerges' | 'surfaces'>
  /**
   * Returns the time before which everything that a surface was sent is settled now, by surface; Unix ms. Undefined where only the
   * past is measured: what was late and is stored since is in the log.
   */
  readonly settledMs: ((workspaceId: string) => Promise<ReadonlyMap<string, number>>) | undefined
}

/**
 * Returns the readings of instants at which the condition of a rule holds. One query reads all instants, and at most
 * `SUBJECTS_MAX` subjects of each. Throws a PermanentError if the rule cannot be measured, such as one with a faulty expression.
 */
export type Measure = (
  deps: MeasureDeps,
  of: { readonly workspaceId: string; readonly rule: AlertRule; readonly instants: Instants },
  signal: AbortSignal,
) => Promise<Reading[]>

/** Most subjects of a rule at an instant: those with the largest values. */
export const SUBJECTS_MAX = 1_000
/** Most readings of a measure, whatever the number of its instants. */
export const READINGS_MAX = 200_000

/** Returns the instants in their order. */
export function timesOf({ fromMs, toMs, stepMs }: Instants): number[] {
  const first = (Math.floor(fromMs / stepMs) + 1) * stepMs
  return Array.from({ length: Math.max(0, Math.floor((toMs - first) / stepMs) + 1) }, (_, i) => first + i * stepMs)
}

/** Returns for how long the condition of a rule has to hold before it begins. All but metrics are measured over a time already. */
export function holdMsOf(rule: AlertRule, kind: AlertRule['kinds'][number]): number {
  return kind === 'metric.threshold' ? (rule.metric?.minutes ?? 0) * MINUTE_MS : 0
}
