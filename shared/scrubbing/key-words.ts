/** Between a small letter or a digit and a capital, and between capitals and a capitalized word. */
const CAMEL = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g
/** Everything but ASCII letters and digits and other alphabets. */
const SEPARATORS = /[^0-9a-z\u{80}-\u{10ffff}]+/u

/** Returns the words of a key in lower case: `http.request.header.X-Api-Key` and `apiKey` both end with `api`, `key`. */
export function wordsOf(key: string): string[] {
  return key
    .replace(CAMEL, ' ')
    .toLowerCase()
    .split(SEPARATORS)
    .filter(word => word !== '')
}
