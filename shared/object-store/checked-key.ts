import { PermanentError } from '../runtime/errors.ts'

const MAX_KEY_BYTES = 1_024

/** Returns the key. Throws a PermanentError that names the rule if the key breaks one. */
export function checkedObjectKey(key: string): string {
  const fault = objectKeyFault(key)
  if (fault !== undefined)
    throw new PermanentError(`S3: an object key must ${fault}: ${JSON.stringify(key.slice(0, 200))}`)
  return key
}

/**
 * Returns the rule that a key breaks, or undefined. S3 servers and HTTP clients treat such keys differently. Some resolve
 * a part `.` or `..` like a path, which might reach an object of another tenant. A control character can be stored, but the
 * XML that deletes the object cannot contain it. Some trim the key in that XML and delete another object.
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
