import type { ComponentChildren } from 'preact'
import { addressOf } from '../state/router.ts'

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
