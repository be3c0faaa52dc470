import { useEffect } from 'preact/hooks'
import { areShortcutsOn } from '../../state/keys.ts'

/** Actions of the keys of the player. */
export interface PlayerKeys {
  readonly toggle: () => void
  readonly step: (direction: -1 | 1) => void
  readonly error: (direction: -1 | 1) => void
}

const TYPES_TEXT = 'input:not([type=checkbox]), select, textarea'
const TAKES_SPACE = 'button, a, summary, input'

/**
 * Runs actions on keys: space plays and pauses, arrows seek, `e` and `E` go to the next and the previous error. A key that the
 * element with the focus has a meaning for keeps it.
 */
export function usePlayerKeys(keys: PlayerKeys): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!areShortcutsOn.value || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      const { target, key } = event
      if (target instanceof HTMLElement && (target.matches(TYPES_TEXT) || target.closest('dialog'))) return
      if (key === ' ' && target instanceof HTMLElement && target.matches(TAKES_SPACE)) return
      const action = {
        ' ': keys.toggle,
        ArrowLeft: () => keys.step(-1),
        ArrowRight: () => keys.step(1),
        e: () => keys.error(1),
        E: () => keys.error(-1),
      }[key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}
