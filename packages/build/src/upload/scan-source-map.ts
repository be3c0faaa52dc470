import { isDebugId } from './bundle-comments.ts'
import { scanMembers } from './scan-members.ts'

/** Properties of a source map, read without building its objects. */
export type ScannedMap =
  | {
      readonly ok: true
      /** Value of `debugId`, else of the older `debug_id`, in lower case. */
      readonly debugId?: string
      /** Positions of the values of both fields with their quotes. */
      readonly idValues: readonly Span[]
      /** Position of the closing brace. New fields come before it, so that most of a map can be hashed once for both forms. */
      readonly insertAt: number
      readonly mappings?: Span
      /** The sections of an index map. */
      readonly sections?: Span
      /** The positions of the map are those of the bundle with the statement of its debug id. */
      readonly countsStatement: boolean
    }
  | { readonly ok: false; readonly reason: string }

/** A part of a text. */
interface Span {
  readonly start: number
  readonly end: number
}

/** A part of a text and its replacement. */
export interface Edit extends Span {
  readonly text: string
}

/**
 * Field of a map whose positions count the statement of its debug id. Maps and bundles are written one after the other, so each
 * states itself whether it was changed (ECMA-426: names of extensions begin with `x_`).
 */
const COUNTS_STATEMENT = 'x_penstockStatement'
const FIELDS = new Set(['version', 'mappings', 'sections', 'debugId', 'debug_id', COUNTS_STATEMENT])

const OPEN_BRACE = 0x7b
const LINE_FEED = 0x0a
const BYTE_ORDER_MARK = Buffer.from('efbbbf', 'hex')
const GUARD = Buffer.from(")]}'")

/**
 * Validates a source map (ECMA-426: `version` 3 with `mappings`, or an index map with `sections`) and finds its debug ids.
 * The inside of string values is not checked; a worker does that.
 */
export function scanSourceMap(map: Buffer): ScannedMap {
  const opening = map.indexOf(OPEN_BRACE, startOf(map))
  if (opening === -1 || !isBlank(map, startOf(map), opening)) return refused('it is not a JSON object')
  const spans = new Map<string, Span>()
  // The last of several members with the same name counts, as in JSON.parse.
  const insertAt = scanMembers(map, opening, (name, start, end) => {
    if (FIELDS.has(name)) spans.set(name, { start, end })
  })
  if (insertAt < 0) return refused('it is not valid JSON')

  const text = (field: string) => {
    const span = spans.get(field)
    return span && map.toString('utf8', span.start, Math.min(span.end, span.start + 64))
  }
  if (text('version') !== '3') return refused('its version is not 3')
  const mappings = text('mappings')?.startsWith('"') ? spans.get('mappings') : undefined
  const sections = text('sections')?.startsWith('[') ? spans.get('sections') : undefined
  if (!mappings && !sections) return refused('it has neither mappings nor sections')
  const idValues = ['debugId', 'debug_id'].flatMap(field => spans.get(field) ?? [])
  const ids = idValues.map(({ start, end }) => map.toString('utf8', start + 1, end - 1))
  const debugId = ids.find(isDebugId)?.toLowerCase()
  return {
    ok: true,
    idValues,
    insertAt,
    countsStatement: text(COUNTS_STATEMENT) === 'true',
    ...(mappings && { mappings }),
    ...(sections && { sections }),
    ...(debugId !== undefined && { debugId }),
  }
}

/** Returns the edits that set the debug id of a map, in its fields or in a new last field. */
export function debugIdEdits({ idValues, insertAt }: ScannedMap & { ok: true }, debugId: string): Edit[] {
  const text = `"${debugId}"`
  if (idValues.length > 0) return idValues.map(span => ({ ...span, text }))
  return [{ start: insertAt, end: insertAt, text: `,"debugId":${text}` }]
}

/** Returns the edit that marks a map whose positions count the statement. */
export function statementMark({ insertAt }: ScannedMap & { ok: true }): Edit {
  return { start: insertAt, end: insertAt, text: `,"${COUNTS_STATEMENT}":true` }
}

/** Returns the bytes with these edits, in pieces. The edits are sorted. Every other byte is unchanged. */
export function edited(bytes: Buffer, edits: readonly Edit[]): Buffer[] {
  const pieces: Buffer[] = []
  let taken = 0
  for (const { start, end, text } of edits) {
    pieces.push(bytes.subarray(taken, start), Buffer.from(text))
    taken = end
  }
  return [...pieces, bytes.subarray(taken)]
}

/**
 * Returns where the JSON of a map begins. ECMA-426 allows a byte order mark before it, and a line that begins with `)]}'`, which
 * some servers add so that pages cannot run the JSON as a script.
 */
function startOf(map: Buffer): number {
  const start = map.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0
  if (!map.subarray(start, start + GUARD.length).equals(GUARD)) return start
  const end = map.indexOf(LINE_FEED, start)
  return end === -1 ? map.length : end + 1
}

function refused(reason: string): ScannedMap {
  return { ok: false, reason }
}

function isBlank(map: Buffer, start: number, end: number): boolean {
  return /^[ \t\r\n]*$/.test(map.toString('latin1', start, end))
}
