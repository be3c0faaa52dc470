import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

const SETTING = 'penstock.shortcuts'

/** Whether keys without a modifier do anything, which WCAG 2.1.4 lets users switch off. */
export const areShortcutsOn = signal(localStorage.getItem(SETTING) !== 'off')

/** Switches the shortcuts on or off, in this browser. */
export function switchShortcuts(on: boolean): void {
  areShortcutsOn.value = on
  localStorage.setItem(SETTING, on ? 'on' : 'off')
}

/** Actions by key. A key after another one is written with a space: `g f`. */
export type KeyActions = Readonly<Record<string, (event: KeyboardEvent) => void>>

/** The key that begins sequences. The key after it has no meaning of its own. */
const FIRST_KEY = 'g'
const SEQUENCE_MS = 1_000
let lastKey = ''
let lastAt = 0

/** Runs actions on keys, unless the user types, holds a modifier or has switched shortcuts off. */
export function useKeys(actions: KeyActions): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!areShortcutsOn.value || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (isTyping(event.target)) return
      const isSecond = lastKey === FIRST_KEY && event.timeStamp - lastAt < SEQUENCE_MS
      const action = actions[isSecond ? `${FIRST_KEY} ${event.key}` : event.key]
      if (action === undefined) return
      event.preventDefault()
      action(event)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}

/** Remembers the key before, for sequences. Called once. */
export function rememberKeys(): void {
  // After all other listeners, which compare with the key before.
  addEventListener('keyup', event => {
    lastKey = event.key
    lastAt = event.timeStamp
  })
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.matches('input:not([type=checkbox]), select, textarea') || target.isContentEditable)
  )
}

/** Moves the focus among the links of a list, which have `data-row`. */
export function moveFocus(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  const current = rows.indexOf(document.activeElement as HTMLElement)
  const next = current < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(current + step, 0), rows.length - 1)
  rows[next]?.focus()
  rows[next]?.scrollIntoView({ block: 'nearest' })
}
