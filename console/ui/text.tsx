import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { formatAge, formatTime } from '../state/format.ts'
import { addressOf, arriveAt } from '../state/router.ts'

/**
 * A time: how long ago it is. `exact` shows the time to the second, `precise` to the millisecond. The title has all of it, and when
 * the service received what happened then.
 */
export function Time(props: {
  readonly iso: string
  readonly exact?: boolean
  readonly precise?: boolean
  readonly receivedAt?: string | undefined
}) {
  const { iso, exact = false, precise = false, receivedAt } = props
  return (
    <time dateTime={iso} title={receivedAt === undefined ? iso : `${iso}, received ${receivedAt}`}>
      {exact || precise ? formatTime(iso, { isPrecise: precise }) : formatAge(iso)}
    </time>
  )
}

/** A time to the second, and how long ago it is. */
export function TimeAndAge({ iso }: { readonly iso: string }) {
  return (
    <>
      <Time iso={iso} exact /> <span class="quiet">{formatAge(iso)}</span>
    </>
  )
}

/** The title of the page and of the document. */
export function Title({ text, quiet }: { readonly text: string; readonly quiet?: string }) {
  document.title = text === 'Penstock' ? text : `${text} · Penstock`
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => (heading.current ? arriveAt(heading.current) : undefined), [])
  return (
    <h1 ref={heading} tabIndex={-1}>
      {text} {quiet && <span class="quiet">{quiet}</span>}
    </h1>
  )
}

/** How long a button states what it did. */
const STATED_MS = 4_000

/** A button that copies a text, and states whether it did. */
export function Copy(props: { readonly text: string; readonly what?: string; readonly class?: string }) {
  const { text, what } = props
  const [outcome, setOutcome] = useState<'copied' | 'failed'>()
  useEffect(() => {
    if (outcome === undefined) return
    const timer = setTimeout(() => setOutcome(undefined), STATED_MS)
    return () => clearTimeout(timer)
  }, [outcome])
  const copy = async () => {
    // Browsers have no clipboard for pages without TLS, and may refuse to write to it.
    const isCopied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
    setOutcome(isCopied ? 'copied' : 'failed')
  }
  return (
    <>
      <button type="button" class={props.class ?? 'plain'} onClick={() => void copy()}>
        Copy{what && ` ${what}`}
      </button>
      <span role="status" class={outcome === 'failed' ? 'fault' : 'quiet'}>
        {outcome === 'copied' && 'Copied'}
        {outcome === 'failed' && 'Not copied: this browser does not allow it. Select the text and copy it.'}
      </span>
    </>
  )
}

/** Names with their values, such as the times and counts of what a page shows. */
export function Facts({ children }: { readonly children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>
}

/** A name with its value. */
export function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** Browsers remove these from a path, also when they are encoded. */
const DOTS: ReadonlySet<string> = new Set(['.', '..'])

/** A link to a session, and to a moment of its recording. A session that no address can name is a text. */
export function SessionLink(props: {
  readonly id: string
  /** Moment in RFC 3339. */
  readonly at?: string | undefined
  readonly children: ComponentChildren
  readonly isRow?: boolean
  readonly class?: string
}) {
  const { id, children, isRow = false } = props
  if (DOTS.has(id)) {
    return (
      <span class={props.class} title="A browser cannot open an address with this id">
        {children}
      </span>
    )
  }
  return (
    <a
      class={props.class}
      href={addressOf(`sessions/${encodeURIComponent(id)}`, { t: props.at })}
      {...(isRow && { 'data-row': true })}
    >
      {children}
    </a>
  )
}
