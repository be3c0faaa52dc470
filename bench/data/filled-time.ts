import { DAY_MS } from '../../schemas/units.ts'
import { DAYS, PARTS_PER_DAY } from './stored-traces.ts'

/** Number of workspaces with log records and points. The first has half of the rows, the next half of the rest. */
export const SIGNAL_WORKSPACES = 8

const SLOT_MS = DAY_MS / PARTS_PER_DAY

/** Returns the number of the workspace of the item with a number: with how many zeros the next number ends. */
export function workspaceNumberOf(item: number): number {
  const next = item + 1
  return Math.min(31 - Math.clz32(next & -next), SIGNAL_WORKSPACES - 1)
}

/** A part of the filled days, whose rows form a part of a table, or two if midnight is in it. */
export interface Slot {
  readonly number: number
  readonly fromMs: number
  readonly lengthMs: number
}

/** Returns the parts of the days that end at `endMs`, in the order of time: merges leave neighbours by arrival together. */
export function slotsUntil(endMs: number, days: number = DAYS): Slot[] {
  return Array.from({ length: days * PARTS_PER_DAY }, (_, number) => ({
    number,
    fromMs: endMs - days * DAY_MS + number * SLOT_MS,
    lengthMs: SLOT_MS,
  }))
}
