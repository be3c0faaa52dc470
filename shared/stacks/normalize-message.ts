import { isHash } from './is-hash.ts'

/** Number of characters that are compared. Longer messages that differ only after them count as equal. */
const MAX_LENGTH = 1024

/** Replaces what varies in a message by `#`: quoted text, objects, addresses, paths, dates, ids and numbers. */
export function normalizeMessage(message: string): string {
  return withoutGroups(firstLines(message.slice(0, MAX_LENGTH)))
    .replace(/\b(status(?: code)?|HTTP)([ :=]{1,3})([1-5]\d\d)\b/gi, spellStatus)
    .replace(/[^\s,;()[\]{}<>"'`|]+/g, normalizeWord)
    .replace(/#(?:[\s:.,/+-]{0,3}#)+/g, '#')
    .replace(
      /(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}[ ,]+)+(?=#)/g,
      '',
    )
    .replace(
      /#(?: (?:UTC|GMT|AM|PM|CET|CEST|E[SD]T|P[SD]T|#|Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))+\b/g,
      '#',
    )
    .replace(/#(?: #)+/g, '#')
}

/** Returns the first two lines that are not blank. The following ones list details. */
function firstLines(text: string): string {
  return text
    .split('\n')
    .filter(line => line.trim() !== '')
    .slice(0, 2)
    .join('\n')
}

/** Writes the status of an HTTP response in letters, so that it stays: `404` and `500` are different failures. */
function spellStatus(_: string, word: string, between: string, status: string): string {
  return `${word}${between}${status.replace(/\d/g, digit => 'zabcdefghi'[Number(digit)] ?? '')}`
}

/** Replaces ids in a name that a client gives to a span, such as `GET /users/123` and `publish order-1234`. */
export function normalizeName(name: string): string {
  if (!/[\s/:]/.test(name)) return name
  return name.slice(0, MAX_LENGTH).replace(/[^\s/:?&=,]+/g, word => (isId(word) ? '#' : word.replace(/[-_]\d+$/, '-#')))
}

function isId(word: string): boolean {
  return /^\d+$|^['"].*['"]$/.test(word) || isHash(word)
}

const QUOTES = new Map([
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['“', '”'],
  ['„', '“”'],
  ['‘', '’'],
  ['«', '»'],
  ['‹', '›'],
  ['「', '」'],
])

/** Replaces quoted text and objects in one pass. */
function withoutGroups(text: string): string {
  const unclosed = new Set<string>()
  let result = ''
  let at = 0
  for (let i = 0; i < text.length; i++) {
    const character = text[i] ?? ''
    const end = QUOTES.has(character)
      ? endOfQuote(text, i, unclosed)
      : isOpening(text, i)
        ? endOfObject(text, i, unclosed)
        : -1
    if (end < 0) continue
    result += `${text.slice(at, i)}#`
    i = end
    at = end + 1
  }
  return result + text.slice(at)
}

/** Finds the quote that closes. An apostrophe in a word opens and closes nothing. */
function endOfQuote(text: string, start: number, unclosed: Set<string>): number {
  const open = text[start] ?? ''
  const closing = QUOTES.get(open) ?? ''
  const isApostrophe = open === "'" || open === '‘'
  if (open === "'" && isWordCharacter(text[start - 1])) return -1
  // The end of a quote is not searched for again after there was none.
  if (unclosed.has(open)) return -1
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (closing.includes(text[i] ?? ' ') && !(isApostrophe && isWordCharacter(text[i + 1]))) return i
  }
  unclosed.add(open)
  return -1
}

function isWordCharacter(character: string | undefined): boolean {
  return character !== undefined && /[\p{L}\p{N}_]/u.test(character)
}

/** Returns whether an object or a list of values begins here. `[ERR_INVALID_ARG]` is a name. */
function isOpening(text: string, at: number): boolean {
  return text[at] === '{' || (text[at] === '[' && /[\s"'\d[{\]-]/.test(text[at + 1] ?? 'x'))
}

/** Finds the bracket that closes, or the end of a text that was cut. */
function endOfObject(text: string, start: number, unclosed: Set<string>): number {
  if (unclosed.has('{')) return -1
  let depth = 0
  for (let i = start; i < text.length; i++) {
    const character = text[i]
    if (character === '{' || character === '[') depth++
    else if ((character === '}' || character === ']') && --depth === 0) return i
  }
  unclosed.add('{')
  return text.length === MAX_LENGTH ? text.length - 1 : -1
}

/** Replaces a word that has an address, a path, an id or a number, and keeps the punctuation after it. */
function normalizeWord(word: string): string {
  const end = word.search(/[.:!?]*$/)
  const own = word.slice(0, end)
  return varies(own)
    ? `#${word.slice(end)}`
    : word.replace(/[\p{L}\p{N}_-]+/gu, part => (/\p{N}/u.test(part) || isHash(part) ? '#' : part))
}

function varies(word: string): boolean {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word) || /^[^@]+@[^@]+\.[^@]+$/.test(word)) return true
  // Paths: absolute, relative to a directory, of Windows, or with an extension.
  if (/^(?:~|\.{1,2}|[a-z]:)?[\\/]\S/i.test(word)) return true
  if (/[\\/].*[\\/]|[\\/][^\\/]+\.\w{1,8}$/.test(word)) return true
  return /^(?:0x)?[0-9a-f]{8,}$/i.test(word) || (word.length >= 12 && (/^[\w+/-]+={1,2}$/.test(word) || isHash(word)))
}
