import { z } from 'zod'
import { measuredSchema } from '../../schemas/records/alerts.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import { type Instants, type Reading, type Subject, timesOf } from './reading.ts'

/** A condition that has not held for as long has ended: one that is now above and now below a threshold does not call each time. */
const ENDS_AFTER_MS = 5 * MINUTE_MS

/** A condition of one subject, as far as it is known. Times are instants in Unix ms. */
export const conditionSchema = z.object({
  subject: z.object({
    findingId: z.string().optional(),
    surfaceId: z.string().optional(),
    service: z.string().optional(),
    environment: z.string().optional(),
    series: z.string().optional(),
  }),
  /** The last value that met it. */
  measured: measuredSchema,
  /** When it held first, of the instants at which it has held since. */
  sinceMs: z.number(),
  /** When it held last. */
  heldMs: z.number(),
  /** Absent while it has not held for long enough. */
  begunMs: z.number().optional(),
})
/** A condition of one subject. */
export type Condition = z.infer<typeof conditionSchema>

/** A condition that begins or ends. At its end, `measured` is the last value that met it. */
export interface Transition {
  readonly atMs: number
  readonly subject: Subject
  readonly measured: Condition['measured']
}

/** Conditions that began and ended at some instants, in their order, and all that is known after the last of them. */
export interface Transitions {
  readonly begun: readonly Transition[]
  readonly ended: readonly Transition[]
  readonly state: readonly Condition[]
}

/**
 * Follows conditions over instants. A condition begins when it has held at each instant of `holdMs`, and ends when it has not held
 * for five minutes. Instants that were left out neither end it nor let it begin.
 */
export function transitions(
  before: readonly Condition[],
  readings: readonly Reading[],
  instants: Instants,
  holdMs: number,
): Transitions {
  const known = new Map(before.map(condition => [subjectKey(condition.subject), condition]))
  const begun: Transition[] = []
  const ended: Transition[] = []
  const readAt = Map.groupBy(readings, ({ atMs }) => atMs)
  for (const atMs of timesOf(instants)) {
    for (const { subject, measured } of readAt.get(atMs) ?? []) {
      const key = subjectKey(subject)
      const condition = held(known.get(key), { subject, measured, atMs, stepMs: instants.stepMs, holdMs })
      if (condition.begunMs === atMs) begun.push({ atMs, subject, measured })
      known.set(key, condition)
    }
    for (const [key, { subject, measured, heldMs, begunMs }] of known) {
      const isOver = atMs - heldMs >= ENDS_AFTER_MS
      if (heldMs === atMs || (begunMs !== undefined && !isOver)) continue
      if (begunMs !== undefined) ended.push({ atMs, subject, measured })
      known.delete(key)
    }
  }
  return { begun, ended, state: [...known.values()] }
}

interface Held extends Reading {
  readonly stepMs: number
  readonly holdMs: number
}

/** Returns a condition that holds at an instant. */
function held(before: Condition | undefined, { subject, measured, atMs, stepMs, holdMs }: Held): Condition {
  if (before?.begunMs !== undefined) return { ...before, measured, heldMs: atMs }
  const sinceMs = before !== undefined && before.heldMs >= atMs - stepMs ? before.sinceMs : atMs
  const hasBegun = atMs - sinceMs >= holdMs
  return { subject, measured, sinceMs, heldMs: atMs, ...(hasBegun && { begunMs: atMs }) }
}

/** Returns a text that is the same for the same subject. */
export function subjectKey({ findingId, surfaceId, service, environment, series }: Subject): string {
  return JSON.stringify([findingId, surfaceId, service, environment, series])
}
