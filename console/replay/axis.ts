import type { Recording } from './recording.ts'

interface Piece {
  readonly from: number
  readonly to: number
  /** Share of the width at which the piece begins, and that it has. */
  readonly at: number
  readonly share: number
  readonly isIdle: boolean
}

/** Idle time that is drawn narrower than it is. */
const IDLE_MS = 60_000
/** Share of the width of such a time, and of all of them. */
const IDLE_SHARE = 0.03
const ALL_IDLE_SHARE = 0.3

/** The scale of a seek bar. Times in which no window has anything are narrow: a night would leave no room for the rest. */
export class Axis {
  readonly #pieces: readonly Piece[]

  constructor({ windows, startMs, endMs }: Recording) {
    const busy = windows
      .flatMap(({ stretches }) => stretches.filter(({ kind }) => kind !== 'still'))
      .sort((a, b) => a.from - b.from)
    const cuts: { from: number; to: number; isIdle: boolean }[] = []
    let end = startMs
    for (const { from, to } of busy) {
      if (from - end > IDLE_MS) cuts.push({ from: end, to: from, isIdle: true })
      end = Math.max(end, to)
    }
    const pieces: { from: number; to: number; isIdle: boolean }[] = []
    let at = startMs
    for (const cut of cuts) {
      pieces.push({ from: at, to: cut.from, isIdle: false }, cut)
      at = cut.to
    }
    pieces.push({ from: at, to: endMs, isIdle: false })
    const idleShare = cuts.length === 0 ? 0 : Math.min(IDLE_SHARE, ALL_IDLE_SHARE / cuts.length)
    const busyMs = pieces.reduce((sum, { from, to, isIdle }) => sum + (isIdle ? 0 : to - from), 0)
    let left = 0
    this.#pieces = pieces.map(piece => {
      const share = piece.isIdle ? idleShare : ((piece.to - piece.from) / (busyMs || 1)) * (1 - idleShare * cuts.length)
      left += share
      return { ...piece, at: left - share, share }
    })
  }

  /** Returns where a time is, as a share of the width. */
  positionOf(time: number): number {
    const piece = this.#pieces.find(({ to }) => time <= to) ?? this.#pieces.at(-1)
    if (piece === undefined) return 0
    const inside = (time - piece.from) / (piece.to - piece.from || 1)
    return piece.at + piece.share * Math.min(Math.max(inside, 0), 1)
  }

  /** Returns the time of a position, the inverse of `positionOf`. */
  timeAt(position: number): number {
    const piece = this.#pieces.find(({ at, share }) => position <= at + share) ?? this.#pieces.at(-1)
    if (piece === undefined) return 0
    const inside = piece.share === 0 ? 0 : (position - piece.at) / piece.share
    return piece.from + (piece.to - piece.from) * Math.min(Math.max(inside, 0), 1)
  }
}
