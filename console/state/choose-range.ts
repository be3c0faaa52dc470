import { SECOND_MS } from '../../schemas/units.ts'
import { changeQuery } from './router.ts'
import type { TimeRange } from './time-range.ts'

/** Shows the time between two moments in Unix ms, to the second, on this page and those that are opened from it. */
export function zoomTo(fromMs: number, toMs: number): void {
  const iso = (seconds: number) => new Date(seconds * SECOND_MS).toISOString()
  const from = Math.floor(fromMs / SECOND_MS)
  chooseRange({ from: iso(from), to: iso(Math.max(from + 1, Math.ceil(toMs / SECOND_MS))) })
}

/** Shows a range on this page, and on those that are opened from it. */
export function chooseRange({ from, to }: TimeRange): void {
  changeQuery({ from, to })
}
