import { setImmediate as nextTurn } from 'node:timers/promises'
import { JsonScanner } from './json-scanner.ts'

/** One turn of the event loop: about a millisecond, so that locks are renewed in between. */
const PIECE_BYTES = 128 * 1024

/**
 * What keeps these bytes from being a source map, or undefined (CONTRACT 4.6): a JSON object with `version: 3` and
 * `mappings`, or an index map with `sections`. Holds nothing of them.
 */
export async function sourceMapFault(body: Buffer): Promise<string | undefined> {
  const scanner = new JsonScanner(['version', 'mappings', 'sections'])
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    if (at > 0) await nextTurn()
    if (!scanner.add(body.subarray(at, at + PIECE_BYTES))) return 'is not JSON'
  }
  if (!scanner.end()) return 'is not JSON'
  const version = scanner.members.get('version')
  if (typeof version !== 'object' || Number(version.number) !== 3) return 'is not a source map: version must be 3'
  if (scanner.members.get('sections') === 'array' || scanner.members.get('mappings') === 'string') return undefined
  return 'is not a source map: it must have mappings (a string) or sections (an array)'
}
