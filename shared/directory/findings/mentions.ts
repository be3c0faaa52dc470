/** Shorter texts are words of many comments. */
const PHRASE_MIN_CHARACTERS = 4
/** Separate ids in a text, in an address and in a list. */
const BETWEEN_IDS = [/[^\w.:~%@+-]+/, /[^\w-]+/]
/** An id that one of these leaves whole. */
const PLAIN_ID = /^[\w.:~%@+-]+$/
/** Punctuation at the end of a word that is none of an id. */
const END = /[.:]+$/

/** Texts that name a person. */
export interface Naming {
  /** Identifiers, addresses and names, which are looked for as whole words and without regard to case. */
  readonly phrases: readonly string[]
  /** Ids of sessions. */
  readonly ids: ReadonlySet<string>
  /** The erasure for which they are looked for. */
  readonly erasureId?: string
}

/**
 * Returns a function that reports whether a text names the person. Phrases of fewer than four characters are not looked for. Ids
 * with unusual characters are found as they are and as an address has them.
 */
export function mentionsOf({ phrases, ids }: Naming): (text: string) => boolean {
  const lower = phrases.map(phrase => phrase.toLowerCase()).filter(phrase => phrase.length >= PHRASE_MIN_CHARACTERS)
  const unusual = [...ids].filter(id => !PLAIN_ID.test(id)).flatMap(id => [id, encodeURIComponent(id.toWellFormed())])
  const hasId = (text: string) =>
    BETWEEN_IDS.some(between => text.split(between).some(word => ids.has(word) || ids.has(word.replace(END, '')))) ||
    unusual.some(id => text.includes(id))
  return text => {
    const lowerText = text.toLowerCase()
    return lower.some(phrase => hasWords(lowerText, phrase)) || hasId(text)
  }
}

function hasWords(text: string, phrase: string): boolean {
  for (let at = text.indexOf(phrase); at !== -1; at = text.indexOf(phrase, at + 1)) {
    if (!isOfWord(text[at - 1]) && !isOfWord(text[at + phrase.length])) return true
  }
  return false
}

const isOfWord = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}]/u.test(character)
