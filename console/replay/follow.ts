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
