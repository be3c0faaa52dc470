import type { ComponentChildren, RefObject } from 'preact'
import { useRef } from 'preact/hooks'
import { signOut } from '../auth/sign-in.ts'
import { areShortcutsOn, moveFocus, switchShortcuts, useKeys } from '../state/keys.ts'
import { refresh } from '../state/load.ts'
import { addressOf, go, place } from '../state/router.ts'
import { chooseTheme, type Theme, theme } from '../state/theme.ts'
import { GlobalSearch } from './global-search.tsx'

/** Pages of the navigation, each with the key that opens it after `g`. */
const NAVIGATION = [
  { name: 'Findings', path: 'findings', key: 'f' },
  { name: 'Services', path: 'services', key: 'v' },
  { name: 'Traces', path: 'traces', key: 't' },
  { name: 'Logs', path: 'logs', key: 'l' },
  { name: 'Metrics', path: 'metrics', key: 'm' },
  { name: 'Sessions', path: 'sessions', key: 's' },
  { name: 'Releases', path: 'releases', key: 'r' },
  { name: 'Pipeline', path: 'pipeline', key: 'p' },
  { name: 'Settings', path: 'settings', key: ',' },
] as const

const SHORTCUTS: readonly (readonly [string, string])[] = [
  ...NAVIGATION.map(({ name, key }) => [`g ${key}`, name] as const),
  ['Ctrl K', 'Search everything'],
  ['/', 'Search in this list'],
  ['j k', 'Next, previous entry'],
  ['Enter', 'Open the entry'],
  ['↑ ↓ ← →', 'Move in a trace, fold and unfold'],
  ['n p', 'Next, previous finding of the list, or match in a trace'],
  ['e', 'Next error of a trace or a recording'],
  ['E', 'Previous error of a recording'],
  ['i c l', 'Idle time, critical path, logs of a trace'],
  ['Esc', 'Close the details, leave a field'],
  ['Space', 'Play, pause a recording'],
  ['← →', 'Seek by five seconds'],
  ['r', 'Read the page again'],
  ['?', 'These keys'],
]

/** The frame of every page: navigation, theme, keys. */
export function Frame({ children }: { readonly children: ComponentChildren }) {
  const keys = useRef<HTMLDialogElement>(null)
  const current = place.value.path.split(/[/-]/, 1)[0] || 'findings'
  useKeys({
    ...Object.fromEntries(NAVIGATION.map(({ path, key }) => [`g ${key}`, () => go(addressOf(path))])),
    '/': () => document.querySelector<HTMLInputElement>('input[type=search]')?.focus(),
    '?': () => keys.current?.showModal(),
    r: refresh,
    j: () => moveFocus(1),
    k: () => moveFocus(-1),
  })
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href={addressOf('')}>
          <svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
            <rect width="16" height="16" rx="4" fill="var(--accent)" />
            <path d="M4 4h3v8H4zm5 0h3v5H9z" fill="var(--on-accent)" />
          </svg>
          Penstock
        </a>
        <nav aria-label="Pages">
          {NAVIGATION.map(({ name, path }) => (
            <a key={path} href={addressOf(path)} aria-current={path === current ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <div class="bar-end">
          <GlobalSearch />
          <label class="select-label">
            <span class="hidden">Theme</span>
            <select value={theme.value} onChange={event => chooseTheme(event.currentTarget.value as Theme)}>
              <option value="system">Auto</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
          </label>
          <button type="button" class="plain" onClick={() => keys.current?.showModal()}>
            Shortcuts
          </button>
          <button type="button" class="plain" onClick={signOut}>
            Sign out
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Shortcuts dialog={keys} />
    </>
  )
}

function Shortcuts({ dialog }: { readonly dialog: RefObject<HTMLDialogElement | null> }) {
  return (
    <dialog ref={dialog} aria-labelledby="keys-title">
      <h2 id="keys-title">Shortcuts</h2>
      <dl class="keys">
        {SHORTCUTS.map(([key, does]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={areShortcutsOn.value}
          onChange={event => switchShortcuts(event.currentTarget.checked)}
        />
        Keys without a modifier are on
      </label>
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  )
}
