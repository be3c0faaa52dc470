/** Maximum bytes of the path of a source map. */
export const SOURCE_MAP_PATH_BYTES = 1_024
/** Maximum characters of the address of a script. */
export const CHUNK_URL_CHARACTERS = 2_048

/** Returns the rule that the path of a source map breaks (docs/api/releases.md#source-map-part). */
export function sourceMapPathFault(path: string): string | undefined {
  if (path === '') return 'must not be empty'
  if (Buffer.byteLength(path) > SOURCE_MAP_PATH_BYTES) return `must have at most ${SOURCE_MAP_PATH_BYTES} bytes`
  if (!path.isWellFormed()) return 'must be well-formed Unicode'
  if (path.includes('\0')) return 'must not contain NUL'
  if (path.includes('\\')) return 'must be separated by /'
  if (path.startsWith('/')) return 'must be relative'
  if (path.split('/').includes('..')) return 'must not contain a part ..'
  return undefined
}
