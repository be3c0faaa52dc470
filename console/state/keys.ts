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

/** Actions by key. A key after another one is written with a space: `g f`. One that returns false leaves the key to the browser. */
type KeyActions = Readonly<Record<string, (event: KeyboardEvent) => unknown>>

/** The key that begins sequences. The key after it has no meaning of its own. */
const FIRST_KEY = 'g'
const SEQUENCE_MS = 1_000
let current = { key: '', at: 0 }
let before = current

/** Runs actions on keys, unless the user types, is in a dialog, holds a modifier or has switched shortcuts off. */
export function useKeys(actions: KeyActions): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!isForShortcuts(event)) return
      const isSecond = before.key === FIRST_KEY && event.timeStamp - before.at < SEQUENCE_MS
      const action = actions[isSecond ? `${FIRST_KEY} ${event.key}` : event.key]
      if (action !== undefined && action(event) !== false) event.preventDefault()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}

/** Reports whether a key may be a shortcut. A dialog that is open has the keys for itself: Escape closes it. */
export function isForShortcuts(event: KeyboardEvent): boolean {
  if (!areShortcutsOn.value || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false
  return !isTyping(event.target) && document.querySelector('dialog[open]') === null
}

/**
 * Remembers the key before, for sequences, and leaves a field with Escape, so that the next key is a shortcut again. Called once.
 * Keys count when they go down, because people who type fast press the second key before they release the first one.
 */
export function followKeys(): void {
  // Before all other listeners, which compare with the key before.
  const remember = (event: KeyboardEvent) => {
    if (event.key === 'Shift') return
    before = current
    current = { key: isTyping(event.target) ? '' : event.key, at: event.timeStamp }
    if (event.key === 'Escape' && !event.isComposing && isTyping(event.target)) leave(event)
  }
  addEventListener('keydown', remember, { capture: true })
}

/** Takes the focus from a field, with its text as it is: a browser would clear a search. In a dialog, Escape closes that. */
function leave(event: KeyboardEvent): void {
  const { target } = event
  if (!(target instanceof HTMLElement) || target.matches('select, dialog *')) return
  event.preventDefault()
  target.blur()
}

function isTyping(target: EventTarget | null): target is HTMLElement {
  return (
    target instanceof HTMLElement &&
    (target.matches('input:not([type=checkbox]), select, textarea') || target.isContentEditable)
  )
}

/** Reports whether no element has the focus, or only the content or the heading of the page, which take no keys. */
export function isFocusFree(): boolean {
  const { activeElement } = document
  return activeElement === null || activeElement.matches('body, main, h1')
}

/** Moves the focus among the links of a list, which have `data-row`. */
export function moveFocus(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  const current = rows.indexOf(document.activeElement as HTMLElement)
  const next = current < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(current + step, 0), rows.length - 1)
  rows[next]?.focus()
  rows[next]?.scrollIntoView({ block: 'nearest' })
}
