import { useEffect } from 'preact/hooks'
import { isForShortcuts } from '../../state/keys.ts'

/** Actions of the keys of the player. */
interface PlayerKeys {
  readonly toggle: () => void
  readonly step: (direction: -1 | 1) => void
  readonly error: (direction: -1 | 1) => void
}

const TAKES_SPACE = 'button, a, summary, input'

/**
 * Runs actions on keys: space plays and pauses, arrows seek, `e` and `E` go to the next and the previous error. A key that the
 * element with the focus has a meaning for keeps it.
 */
export function usePlayerKeys(keys: PlayerKeys): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!isForShortcuts(event)) return
      const { target, key } = event
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
