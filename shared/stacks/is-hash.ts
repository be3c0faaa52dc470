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
 * and less than half of its letters are in words. `step1form`, `MyWidget` and `settings` are names.
 */
export function isHash(text: string): boolean {
  if (isHexHash(text)) return true
  if (!/^[\w~-]{8,64}$/.test(text)) return false
  const hasDigit = /\d/.test(text)
  // esbuild writes eight characters of base32.
  if (hasDigit && /^[A-Z2-7]{8}$/.test(text)) return true
  const parts = text.match(/[A-Z]?[a-z]+|[A-Z]+|\d+/g) ?? []
  const letters = parts.filter(part => !/\d/.test(part))
  const words = letters.filter(part => isWord(part, hasDigit))
  const lengthOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0)
  if (letters.length === 0 || lengthOf(words) * 2 > lengthOf(letters)) return false
  if (parts.length >= 3 && text.length < parts.length * 3) return true
  return letters.some(part => part.length >= 6 && !isWord(part, hasDigit))
}

const ABBREVIATION = /^(?:css|ctx|db|dts|html|http|https|jpg|js|jsx|mdx|png|sql|src|svg|tls|ts|tsx|xml|xhr)$/

/** Returns whether letters can be a word or an abbreviation of one. Between digits they need more vowels. */
function isWord(letters: string, besideDigits: boolean): boolean {
  const word = letters.toLowerCase()
  const vowels = word.replace(/[^aeiouy]/g, '').length
  if (word.length < 3 || vowels === 0) return ABBREVIATION.test(word)
  if (vowels * (besideDigits ? 4 : 6) < word.length) return false
  let rare = 0
  for (let i = 1; i < word.length; i++) if (RARE_PAIRS.get(word[i - 1] ?? '')?.has(word[i] ?? '')) rare++
  return rare <= (word.length < 6 ? 0 : 1)
}
