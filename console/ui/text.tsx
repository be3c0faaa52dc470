import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { formatAge, formatTime } from '../state/format.ts'
import { addressOf, arriveAt } from '../state/router.ts'

/** A time: how long ago it is. `exact` shows the time to the second, `precise` to the millisecond. The title has all of it. */
export function Time(props: { readonly iso: string; readonly exact?: boolean; readonly precise?: boolean }) {
  const { iso, exact = false, precise = false } = props
  return (
    <time dateTime={iso} title={iso}>
      {exact || precise ? formatTime(iso, { isPrecise: precise }) : formatAge(iso)}
    </time>
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

/** A button that copies a text. */
export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <button type="button" class="plain copy" onClick={() => void navigator.clipboard?.writeText(text)}>
      Copy {what}
    </button>
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

/** A link to a session. A session that no address can name is a text. */
export function SessionLink(props: {
  readonly id: string
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
    <a class={props.class} href={addressOf(`sessions/${encodeURIComponent(id)}`)} {...(isRow && { 'data-row': true })}>
      {children}
    </a>
  )
}
