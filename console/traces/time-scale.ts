import type { SpanColumns } from './span-columns.ts'
import type { SpanTree } from './span-tree.ts'

/** A time in which no span without children runs, in nanoseconds after the start of the trace. */
interface IdleGap {
  readonly from: number
  readonly to: number
}

/** The axis of a trace: times in nanoseconds after its start, and shares of the width from 0 to 1. */
interface TimeScale {
  readonly shareOf: (nanos: number) => number
  readonly timeAt: (share: number) => number
  /** Gaps that are drawn shorter than they are. */
  readonly gaps: readonly IdleGap[]
}

/** Share of the trace from which a gap is compressed, so that there are at most 20. */
const GAP_SHARE = 0.05
/** Width of a compressed gap, as a share of the time that is left. */
const GAP_WIDTH = 0.02

/** Returns the axis without compressed gaps. */
export function linearScale(length: number): TimeScale {
  return scaleOf(length, [])
}

/** Returns the axis with its idle time compressed, in one pass over the spans, which are ordered by start. */
export function idleScale({ starts, durations, count }: SpanColumns, { sizes }: SpanTree, length: number): TimeScale {
  const gaps: IdleGap[] = []
  let busyUntil = 0
  const add = (until: number) => {
    if (until - busyUntil >= length * GAP_SHARE) gaps.push({ from: busyUntil, to: until })
  }
  for (let span = 0; span < count; span++) {
    if ((sizes[span] as number) > 1) continue
    const start = starts[span] as number
    add(start)
    busyUntil = Math.max(busyUntil, start + Math.max(0, durations[span] as number))
  }
  add(length)
  return scaleOf(length, gaps)
}

function scaleOf(length: number, gaps: readonly IdleGap[]): TimeScale {
  const idle = gaps.reduce((sum, { from, to }) => sum + to - from, 0)
  const gapLength = Math.max(length - idle, length * GAP_SHARE) * GAP_WIDTH
  // Corners of the line from times to drawn lengths.
  const times = [0]
  const drawn = [0]
  const addCorner = (time: number, width: number) => {
    times.push(time)
    drawn.push((drawn.at(-1) as number) + width)
  }
  for (const { from, to } of gaps) {
    addCorner(from, from - (times.at(-1) as number))
    addCorner(to, gapLength)
  }
  addCorner(length, length - (times.at(-1) as number))
  const whole = drawn.at(-1) || 1
  return {
    gaps,
    shareOf: nanos => interpolate(times, drawn, nanos) / whole,
    timeAt: share => interpolate(drawn, times, share * whole),
  }
}

/** Interpolates between corners, which are few. Positions outside of them are those of the ends. */
function interpolate(from: readonly number[], to: readonly number[], at: number): number {
  let i = 1
  while (i < from.length - 1 && (from[i] as number) < at) i++
  const [x0, x1] = [from[i - 1] as number, from[i] as number]
  const [y0, y1] = [to[i - 1] as number, to[i] as number]
  // Calculated, the end of a trace was at 1.0000000000000002 of the width.
  if (at >= x1) return y1
  return y0 + (Math.max(at, x0) - x0) * ((y1 - y0) / (x1 - x0))
}
