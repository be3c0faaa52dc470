import { formatAge, formatTime } from '../state/format.ts'

/** A time: how long ago it is, with the exact time in its title. */
export function Time({ iso, exact = false }: { readonly iso: string; readonly exact?: boolean }) {
  return (
    <time dateTime={iso} title={iso}>
      {exact ? formatTime(iso) : formatAge(iso)}
    </time>
  )
}

/** The title of the page and of the document. */
export function Title({ text, quiet }: { readonly text: string; readonly quiet?: string }) {
  document.title = text === 'Penstock' ? text : `${text} · Penstock`
  return (
    <h1>
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
