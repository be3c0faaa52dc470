import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Loaded, useLoad } from '../state/load.ts'
import { Loading } from '../ui/states.tsx'
import { type Arrival, type ListKind, LOOKS } from './arrivals.ts'
import { HowToSend } from './how-to-send.tsx'
import { OTEL_SNIPPETS, RELEASE_SNIPPETS, SESSION_SNIPPETS, type Snippet } from './snippets.ts'

/** The words and the examples of a list. */
interface Guide {
  readonly title: string
  readonly text: string
  /** What is waited for. */
  readonly first: string
  readonly snippets: readonly Snippet[]
}

const GUIDES: Readonly<Record<ListKind, Guide>> = {
  findings: {
    title: 'No findings yet',
    text: 'A finding appears here when a span or a log record with an error arrives.',
    first: 'first span',
    snippets: OTEL_SNIPPETS,
  },
  traces: {
    title: 'No traces yet',
    text: 'A trace appears here a moment after its first span arrives.',
    first: 'first span',
    snippets: OTEL_SNIPPETS,
  },
  logs: {
    title: 'No log records yet',
    text: 'A log record appears here a moment after it arrives. The settings below are those of logs too.',
    first: 'first log record',
    snippets: OTEL_SNIPPETS,
  },
  metrics: {
    title: 'No metrics yet',
    text: 'A metric appears here a moment after its first point arrives. The settings below are those of metrics too.',
    first: 'first point of a metric',
    snippets: OTEL_SNIPPETS,
  },
  sessions: {
    title: 'No sessions yet',
    text: 'A session appears here with its first identity, heartbeat, replay chunk, or span with the attribute session.id.',
    first: 'first session',
    snippets: SESSION_SNIPPETS,
  },
  releases: {
    title: 'No releases yet',
    text: 'A release appears here when a build registers it or uploads its source maps.',
    first: 'first release',
    snippets: RELEASE_SNIPPETS,
  },
}

/** Replaces the entries of an empty list. If nothing was ever received, shows how to send it; else its children. */
export function NoData({ kind, children }: { readonly kind: ListKind; readonly children: ComponentChildren }) {
  const { loaded, isPaused, goOn } = useArrival(kind)
  const wasNothing = useRef(false)
  const { value, fault } = loaded
  if (value === null) wasNothing.current = true
  if (!wasNothing.current) {
    // Who may not look for it reads the words of the list.
    if (value || (fault && fault.retryAfterMs === undefined)) return <>{children}</>
    return <Loading text="Looking for what was sent" />
  }
  const { title, text, first, snippets } = GUIDES[kind]
  return (
    <section class="notice first-data">
      <h2>{title}</h2>
      <p>{text}</p>
      <p role="status" class="arrival">
        {value ? (
          <a href={value.address}>{value.text}</a>
        ) : (
          !isPaused && (
            <>
              <span class="spinner" aria-hidden="true" />
              Waiting for the {first}…
            </>
          )
        )}
      </p>
      {!value && isPaused && (
        <button type="button" onClick={goOn}>
          Look for the {first} again
        </button>
      )}
      <HowToSend snippets={snippets} />
    </section>
  )
}

const EVERY_MS = 2_000
/** Looks in a row, of 20 minutes. A page that is left open does not ask for ever. */
const LOOKS_MAX = 600

/** Looks for what was received: again every two seconds while there is nothing and the page is visible, up to LOOKS_MAX times. */
function useArrival(kind: ListKind): {
  readonly loaded: Loaded<Arrival | null>
  readonly isPaused: boolean
  readonly goOn: () => void
} {
  const [look, setLook] = useState(0)
  const [until, setUntil] = useState(LOOKS_MAX)
  const loaded = useLoad(`arrival ${kind} ${look}`, signal => LOOKS[kind]({ signal }))
  const isPaused = look >= until
  const isWaiting = loaded.value === null && !loaded.isLoading && !isPaused
  useEffect(() => {
    if (!isWaiting) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const wait = () => {
      clearTimeout(timer)
      if (document.visibilityState === 'visible') timer = setTimeout(() => setLook(look + 1), EVERY_MS)
    }
    wait()
    document.addEventListener('visibilitychange', wait)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', wait)
    }
  }, [isWaiting, look])
  const goOn = () => {
    setUntil(look + LOOKS_MAX)
    setLook(look + 1)
  }
  return { loaded, isPaused, goOn }
}
