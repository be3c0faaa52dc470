import { signal } from '@preact/signals'

/** Path below which the console is served. */
export const BASE = '/console/'

/** Where the console is. Filters, selections and pages of lists are all in the query. */
interface Place {
  /** Path below `BASE`, without a slash at its ends. */
  readonly path: string
  readonly query: URLSearchParams
}

/** The address of the page. */
export const place = signal<Place>(read())

function read(): Place {
  const { pathname, search } = globalThis.location
  return { path: pathname.slice(BASE.length).replace(/\/$/, ''), query: new URLSearchParams(search) }
}

/**
 * Returns the address of a path of the console. Parameters that are empty or undefined are left out. The time range of this page is
 * kept unless the query has a `from`, which may be undefined.
 */
export function addressOf(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const range = 'from' in query ? {} : { from: place.value.query.get('from'), to: place.value.query.get('to') }
  const given = Object.entries({ ...query, ...range }).filter((pair): pair is [string, string] => Boolean(pair[1]))
  const text = new URLSearchParams(given).toString()
  return BASE + path + (text && `?${text}`)
}

/** Whether another page was opened whose heading has not had the focus yet. */
let isArriving = false

/** Goes to an address of the console. `replace` leaves no entry in the history. */
export function go(address: string, { replace = false } = {}): void {
  if (replace) history.replaceState(history.state, '', address)
  else {
    leaveEntry()
    entry = newEntry()
    history.pushState({ entry }, '', address)
  }
  follow()
}

/** The current entry of the history. */
let entry = ''
const newEntry = () => String(performance.timeOrigin + performance.now())
/** Where the page of each entry was scrolled to when it was left, the one that was left longest ago first. */
const positions = new Map<string, number>()
const POSITIONS_MAX = 50

function leaveEntry(): void {
  positions.delete(entry)
  positions.set(entry, scrollY)
  const [oldest] = positions.keys()
  if (positions.size > POSITIONS_MAX && oldest !== undefined) positions.delete(oldest)
}

/** Shows the entry to which the user went back or forward, where it was left. Entries of anchors are the browser's. */
function returnTo({ state }: PopStateEvent): void {
  const next = (state as { readonly entry?: unknown } | null)?.entry
  if (typeof next === 'string') {
    leaveEntry()
    entry = next
    scrollBack(positions.get(next) ?? 0)
  }
  follow()
}

/** A page that is read for longer is not scrolled any more: the user has begun to read. */
const SCROLL_BACK_MS = 3_000

/** Scrolls to a position as soon as the page is long enough, unless the user does something before. */
function scrollBack(top: number): void {
  const ended = new AbortController()
  for (const does of ['wheel', 'touchstart', 'pointerdown', 'keydown', 'popstate']) {
    addEventListener(does, () => ended.abort(), { signal: ended.signal, passive: true })
  }
  const deadline = performance.now() + SCROLL_BACK_MS
  const attempt = () => {
    if (ended.signal.aborted) return
    scrollTo(0, top)
    if (Math.abs(scrollY - top) <= 1 || performance.now() > deadline) ended.abort()
    else requestAnimationFrame(attempt)
  }
  // Not at once: the page that is left would be scrolled.
  requestAnimationFrame(attempt)
}

function follow(): void {
  const next = read()
  if (next.path !== place.value.path) isArriving = true
  place.value = next
}

/**
 * Gives the focus to the heading of a page that was opened, so that readers of the screen state it and the keys begin there.
 * Returns what to do before the heading is removed: the one that replaces it gets the focus.
 */
export function arriveAt(heading: HTMLElement): () => void {
  if (isArriving) heading.focus({ preventScroll: true })
  isArriving = false
  return () => {
    if (document.activeElement === heading) isArriving = true
  }
}

/** Changes parameters of the query; undefined removes one. A change of filters begins at the first page. */
export function changeQuery(
  changes: Readonly<Record<string, string | undefined>>,
  options: { readonly replace?: boolean } = {},
): void {
  const { path, query } = place.value
  const kept = Object.fromEntries([...query].filter(([name]) => name !== 'cursor'))
  go(addressOf(path, { ...kept, ...changes }), options)
}

/** Follows links of the console without loading the document again. Other links, and clicks with a modifier, are the browser's. */
export function followLinks(): void {
  history.scrollRestoration = 'manual'
  entry = (history.state as { readonly entry?: string } | null)?.entry ?? newEntry()
  history.replaceState({ entry }, '')
  addEventListener('popstate', returnTo)
  document.addEventListener('click', event => {
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!link || !isPlain || event.defaultPrevented || link.target || link.origin !== location.origin) return
    if (!link.pathname.startsWith(BASE) || link.hash) return
    event.preventDefault()
    go(link.pathname + link.search)
    scrollTo(0, 0)
  })
}

/** Returns the members that have a value: an operation refuses a parameter that is empty. */
export function present<T extends object>(parameters: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '')
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

/** Returns parameters of the address by their names, those that are there. */
export function given<K extends string>(query: URLSearchParams, ...names: readonly K[]): { [N in K]?: string } {
  return Object.fromEntries(
    names.map(name => [name, query.get(name)]).filter(([, value]) => value !== null && value !== ''),
  ) as { [N in K]?: string }
}
