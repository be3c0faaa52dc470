/**
 * Letters that hardly ever follow a letter in names of files: the first of each word, then those after it. Counted in 5,000
 * words of the paths of 400 npm packages: a word of eight letters has none of these pairs in 99 of 100 cases, a random text two.
 */
const RARE_PAIRS = new Map(
  `bkqz cjnqxz dq fghjmpqvwxz gdfjkqw hfghjklvwxz ihjwy jbcfghjklmnqrtxyz khjkmpqvxz ljnqxz mkwxyz nxz oqz pjqvwxz
   qabdefghijkmnopqrstvwyz rjqxz sjz tjqvz uhjkqvy vcdghjklnqruvxyz wcgjmquvwxyz xfgjkmquvwyz yhkqvxy zbdfghjkmnpqrtvx`
    .split(/\s+/)
    .map(([first = '', ...rest]) => [first, new Set(rest)]),
)

/** Returns whether a text is a digest in hexadecimal digits, a UUID or a number of eight digits or more. */
export function isHexHash(text: string): boolean {
  return /^[0-9a-f-]{8,64}$/i.test(text) && /[0-9a-f]{4}/i.test(text)
}

/** Returns whether a text has few hexadecimal digits, at least one of which is none of the letters: `3f9a2`, `88aa2c`. */
export function isShortHexHash(text: string): boolean {
  return /^[0-9a-f]{5,7}$/.test(text) && /\d/.test(text)
}

/**
 * Returns whether a text looks random, as a hash in base32, base36, base62 or base64url does: it has at least eight characters,
 * and letters that are in no word. `step1form`, `MyWidget` and `settings` are names.
 */
export function isHash(text: string): boolean {
  if (isHexHash(text)) return true
  if (!/^[\w~-]{8,64}$/.test(text)) return false
  const hasDigit = /\d/.test(text)
  // esbuild writes eight characters of base32.
  if (hasDigit && /^[A-Z2-7]{8}$/.test(text)) return true
  const chunks = text.split(/[-_~]/)
  const isNamed = (chunk: string) => /^(?:[A-Z]?[a-z]{2,}|[A-Z]{3,})$/.test(chunk) && isWord(chunk.toLowerCase(), false)
  if (chunks.length > 1 && chunks.some(isNamed)) return false
  const letters = text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []
  // A long word is not there by chance.
  if (letters.some(part => part.length >= 6 && part.length < text.length && isWord(part, true))) return false
  const lengthOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0)
  const outside = lengthOf(letters.filter(part => !isWord(part, hasDigit)))
  return text.length === 8 ? outside > 0 : outside * 4 > lengthOf(letters)
}

const ABBREVIATION =
  /^(?:an|api|as|at|be|by|css|ctx|db|do|dom|dts|go|html|https?|id|if|in|io|is|jpg|json|jsx?|mdx|my|no|of|on|or|png|sql|src|svg|tls|to|tsx?|ui|up|url|xhr|xml)$/

/** Returns whether letters can be a word or an abbreviation of one. Between digits they need more vowels. */
function isWord(letters: string, besideDigits: boolean): boolean {
  const word = letters.toLowerCase()
  if (ABBREVIATION.test(word)) return true
  const vowels = word.replace(/[^aeiouy]/g, '').length
  if (word.length < 3 || vowels * (besideDigits ? 4 : 6) < word.length) return false
  // Capitals alone are rarely a word, and are one only if there are no digits.
  if (/^[A-Z]{2,7}$/.test(letters)) return false
  let rare = 0
  for (let i = 1; i < word.length; i++) if (RARE_PAIRS.get(word[i - 1] ?? '')?.has(word[i] ?? '')) rare++
  return rare <= (word.length < 6 || besideDigits ? 0 : 1)
}
