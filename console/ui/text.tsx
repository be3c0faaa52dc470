import { useLayoutEffect, useRef } from 'preact/hooks'
import { formatAge, formatTime } from '../state/format.ts'
import { arriveAt } from '../state/router.ts'

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
