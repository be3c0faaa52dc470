import { parseJson } from '../../shared/json/parse-json.ts'

/** Longer texts of `exception.debug_ids` are ignored. A hundred scripts fit into the limit. */
const LIMIT_CHARACTERS = 32 * 1024
const MAX_SCRIPTS = 100
const MAX_URL_LENGTH = 2_048

/** Debug ids by script URL or path. */
export type DebugIds = ReadonlyMap<string, string>

/** No debug ids, shared by all exceptions without any. */
export const NO_DEBUG_IDS: DebugIds = new Map()

/**
 * Reads the attribute `exception.debug_ids`: a JSON object of debug ids by script URL or path. A key-value list is
 * stored as such an object too. Other entries are ignored.
 */
export function readDebugIds(text: string): DebugIds {
  if (text.length > LIMIT_CHARACTERS || !text.startsWith('{')) return NO_DEBUG_IDS
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null) return NO_DEBUG_IDS
  const ids = new Map<string, string>()
  for (const [url, id] of Object.entries(value)) {
    const debugId = typeof id === 'string' ? canonicalDebugId(id) : undefined
    if (debugId === undefined || url === '' || url.length > MAX_URL_LENGTH) continue
    ids.set(url, debugId)
    if (ids.size === MAX_SCRIPTS) break
  }
  return ids
}

/** Returns a UUID in lower case with dashes, or undefined for any other text. */
export function canonicalDebugId(text: string): string | undefined {
  if (text.length !== 32 && text.length !== 36) return undefined
  const digits = text.replaceAll('-', '').toLowerCase()
  if (!/^[0-9a-f]{32}$/.test(digits)) return undefined
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
