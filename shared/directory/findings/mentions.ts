/** Shorter texts are words of many comments. */
const PHRASE_MIN_CHARACTERS = 4
/** Separates ids in a text, also in an address. */
const BETWEEN_IDS = /[\s/?#&=()<>"',;]+/

/** Texts that name a person. */
export interface Naming {
  /** Identifiers, addresses and names, which are looked for as whole words and without regard to case. */
  readonly phrases: readonly string[]
  /** Ids of sessions. */
  readonly ids: ReadonlySet<string>
}

/** Returns a function that reports whether a text names the person. Phrases of fewer than four characters are not looked for. */
export function mentionsOf({ phrases, ids }: Naming): (text: string) => boolean {
  const lower = phrases.map(phrase => phrase.toLowerCase()).filter(phrase => phrase.length >= PHRASE_MIN_CHARACTERS)
  return text => {
    const lowerText = text.toLowerCase()
    return lower.some(phrase => hasWords(lowerText, phrase)) || text.split(BETWEEN_IDS).some(word => ids.has(word))
  }
}

function hasWords(text: string, phrase: string): boolean {
  for (let at = text.indexOf(phrase); at !== -1; at = text.indexOf(phrase, at + 1)) {
    if (!isOfWord(text[at - 1]) && !isOfWord(text[at + phrase.length])) return true
  }
  return false
}

const isOfWord = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}]/u.test(character)
