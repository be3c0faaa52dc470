import { UNSEEN } from '../../shared/scrubbing/unseen-characters.ts'

/**
 * Returns a text of a client as one line without characters that a reader does not see, such as marks of direction. It has
 * at most `maxCharacters` UTF-16 units; a longer text ends with `…`.
 */
export function oneLine(text: string, maxCharacters: number): string {
  // Bounds the work on a text of any length.
  const start = text.slice(0, 4 * maxCharacters)
  return cut(
    start
      .replaceAll(/[\s\u0085]+/g, ' ')
      .replaceAll(UNSEEN, '')
      .trim(),
    maxCharacters,
  )
}

/** Returns the first `maxCharacters` UTF-16 units of a text. A longer text ends with `…`, and no character is halved. */
export function cut(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const kept = text.slice(0, Math.max(0, maxCharacters - 1))
  return `${/[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept}…`
}

/** The most characters that the escape of one character has: `&quot;`. */
const ESCAPE_MAX = 6

/** Escapes a text. The result has at most `maxCharacters`: a longer text is cut before it is escaped. */
export function escapeWithin(text: string, maxCharacters: number, escapeText: (text: string) => string): string {
  let kept = cut(text, maxCharacters)
  let escaped = escapeText(kept)
  while (escaped.length > maxCharacters) {
    kept = cut(kept, kept.length - Math.ceil((escaped.length - maxCharacters) / ESCAPE_MAX))
    escaped = escapeText(kept)
  }
  return escaped
}

const URL_MAX_CHARACTERS = 1_000
/** Characters that end a link in Markdown, Slack or HTML, and that `URL` keeps. */
const LINK_ENDS = /[()<>|"'`\\{}^\s]/g

/**
 * Returns a URL in which no character ends the link that it is part of. Returns undefined if it is not an http or https URL,
 * has a user, which may disguise the host, or has over 1,000 characters.
 */
export function linkUrl(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined
  const { protocol, username, password, href } = new URL(url)
  if (!/^https?:$/.test(protocol) || username !== '' || password !== '') return undefined
  const encoded = href.replaceAll(LINK_ENDS, end => `%${end.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
  return encoded.length <= URL_MAX_CHARACTERS ? encoded : undefined
}

/** Escapes a text for the contents and the quoted attributes of HTML. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}
