import type { ReadonlySignal } from '@preact/signals'

/** The clock of a player, which everything of the session follows. Times are Unix ms. */
export interface SessionClock {
  readonly time: ReadonlySignal<number>
  /** Goes to a time, and keeps it in the address. */
  seek(at: number): void
}
