import { PermanentError } from '../runtime/errors.ts'

const MAX_KEY_BYTES = 1_024

/** The key, or a PermanentError that says what is wrong with it. */
export function checkedObjectKey(key: string): string {
  const fault = objectKeyFault(key)
  if (fault !== undefined)
    throw new PermanentError(`S3: an object key must ${fault}: ${JSON.stringify(key.slice(0, 200))}`)
  return key
}

/**
 * The rule that a key breaks, which not every S3 server and HTTP client takes for the same. A part `.` or `..` is
 * resolved like a path by some, and might reach another tenant's object. A control character can be stored, but not named
 * in the XML that deletes it. Space around a key is cut there by some, and another object deleted.
 */
export function objectKeyFault(key: string): string | undefined {
  if (key === '') return 'not be empty'
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `have at most ${MAX_KEY_BYTES} bytes`
  if (!key.isWellFormed()) return 'be well-formed Unicode'
  if (/[\p{Cc}\p{Zl}\p{Zp}\uFFFE\uFFFF]/u.test(key)) return 'have no control characters or line breaks'
  if (key !== key.trim()) return 'not begin or end with white space'
  if (key.split('/').some(part => part === '.' || part === '..')) return 'have no part that is . or ..'
  return undefined
}
