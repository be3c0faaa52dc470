import type { ComponentChildren } from 'preact'
import { useErrorBoundary } from 'preact/hooks'
import type { Fault } from '../api/client.ts'
import { forgetValues, type Loaded } from '../state/load.ts'
import { changeQuery, place } from '../state/router.ts'

/** States that something is on its way. Shown after a moment, so that fast responses do not flicker. */
export function Loading({ text }: { readonly text: string }) {
  return (
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      {text}…<span class="slow"> This takes longer than usual: the store is busy, or does not respond.</span>
    </div>
  )
}

/** A title, a text and what the user can do. */
export function Notice(props: {
  readonly title: string
  readonly text: string
  readonly children?: ComponentChildren
}) {
  return (
    <section class="notice">
      <h2>{props.title}</h2>
      <p>{props.text}</p>
      {props.children}
    </section>
  )
}

const NOT_FOUND = 'It does not exist in this workspace, or its retention has ended.'

/** States why something could not be read, and what happens next. */
export function Failed({ fault, again }: { readonly fault: Fault; readonly again: () => void }) {
  const { title, text } = explain(fault)
  // A page after the first one: its cursor has expired, or the list is another one by now.
  const hasCursor = fault.status === 400 && place.value.query.has('cursor')
  return (
    <section class="notice failed" role="alert">
      <h2>{title}</h2>
      <p>{text}</p>
      <p class="quiet">
        {fault.code}: {fault.message}
      </p>
      {hasCursor && (
        <button type="button" onClick={() => changeQuery({})}>
          First page
        </button>
      )}
      {fault.retryAfterMs === undefined ? (
        <button type="button" onClick={again}>
          Try again
        </button>
      ) : (
        <p role="status" class="loading-inline">
          <span class="spinner" aria-hidden="true" />
          Trying again by itself…
        </p>
      )}
    </section>
  )
}

function explain({ status, code }: Fault): { title: string; text: string } {
  if (code === 'NETWORK')
    return { title: 'The service cannot be reached', text: 'The connection is lost, or it restarts.' }
  if (status === 404) return { title: 'Not found', text: NOT_FOUND }
  if (status === 403)
    return { title: 'You may not see this', text: 'Ask somebody who manages the members of this workspace.' }
  if (status === 400) {
    return {
      title: 'These filters cannot be applied',
      text: 'Change the one that is named. A list below is that of before.',
    }
  }
  if (status === 429) return { title: 'Too much at once', text: 'Other reads of this workspace are in progress.' }
  if (status === 503) {
    return {
      title: 'Stored data cannot be read at the moment',
      text: 'The store of the service does not respond. Telemetry is still accepted, and will be stored.',
    }
  }
  return { title: 'Something went wrong', text: 'This is an error of the service.' }
}

/** Shows a value once it is read: before that its loading, and a fault if it cannot be read. The last value stays in view. */
export function Shown<T>(props: {
  readonly loaded: Loaded<T>
  readonly what: string
  readonly children: (value: T) => ComponentChildren
}) {
  const { value, fault, isLoading, again } = props.loaded
  return (
    <div class={isLoading && value !== undefined ? 'stale' : undefined} aria-busy={isLoading}>
      {fault && <Failed fault={fault} again={again} />}
      {value === undefined && !fault && <Loading text={`Reading ${props.what}`} />}
      {value !== undefined && fault?.status !== 404 && props.children(value)}
    </div>
  )
}

/** Shows its children. If an error of the console prevents that, states it in their place, so that the rest of the page stays. */
export function Guarded(props: {
  readonly what: string
  /** The heading of the page, if its own is among the children. */
  readonly heading?: ComponentChildren
  readonly children: ComponentChildren
}) {
  const [error, again] = useErrorBoundary()
  if (error === undefined) return <>{props.children}</>
  const readAgain = () => {
    // A remembered value may be the cause.
    forgetValues()
    again()
  }
  return (
    <>
      {props.heading}
      <section class="notice failed" role="alert">
        <h2>{props.what} cannot be shown</h2>
        <p>This is an error of the console. Nothing that is stored is affected, and other pages can be used.</p>
        <p class="quiet">{error instanceof Error ? error.message : String(error)}</p>
        <button type="button" onClick={readAgain}>
          Try again
        </button>
      </section>
    </>
  )
}
