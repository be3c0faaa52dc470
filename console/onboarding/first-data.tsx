import type { Arrival, ListKind } from './arrivals.ts'
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

/** Shows how to send the first entry of a list, and states when it has arrived. */
export function FirstData(props: {
  readonly kind: ListKind
  readonly arrival: Arrival | null | undefined
  readonly isPaused: boolean
  readonly goOn: () => void
}) {
  const { kind, arrival: value, isPaused, goOn } = props
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
