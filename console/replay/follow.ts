import type { ReadonlySignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'

/** Scrolls a list, and only the list, to its current entry, unless the user is in it. */
export function useFollowed(list: RefObject<HTMLElement | null>, current: number): void {
  useEffect(() => {
    const box = list.current
    const entry = box?.children[current]
    if (!box || !(entry instanceof HTMLElement) || box.matches(':hover, :focus-within')) return
    box.scrollTop = entry.offsetTop - box.offsetTop - box.clientHeight / 3
  }, [list, current])
}

/** The clock of a player, which everything of the session follows. Times are Unix ms. */
export interface SessionClock {
  readonly time: ReadonlySignal<number>
  /** Goes to a time, and keeps it in the address. */
  seek(at: number): void
}
