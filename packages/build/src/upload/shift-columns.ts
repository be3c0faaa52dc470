import type { Edit, ScannedMap } from './scan-source-map.ts'

/** Text that is inserted into a line of a bundle. */
interface Insertion {
  readonly line: number
  readonly column: number
  /** Number of columns by which the rest of the line moves. */
  readonly length: number
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/**
 * Returns the edits of a map whose bundle gets an insertion. Columns are relative to those before them in their line, so one
 * number changes. Nothing else of the mappings is read. Returns undefined if the mappings are not in the usual form.
 */
export function shiftColumns(
  map: Buffer,
  scanned: ScannedMap & { ok: true },
  insertion: Insertion,
): Edit[] | undefined {
  const { mappings, sections } = scanned
  if (sections) {
    const shifted = shiftSections(JSON.parse(map.toString('utf8', sections.start, sections.end)), insertion)
    return shifted && [{ ...sections, text: JSON.stringify(shifted) }]
  }
  if (!mappings) return undefined
  const edit = shiftMappings(map, mappings.start + 1, mappings.end - 1, insertion)
  return edit === 'unchanged' ? [] : edit && [edit]
}

/** Returns the edit of mappings, which are the bytes from `start` to `end`. */
function shiftMappings(
  map: Buffer,
  start: number,
  end: number,
  { line, column, length }: Insertion,
): Edit | 'unchanged' | undefined {
  let at = start
  for (let passed = 0; passed < line; passed++) {
    const semicolon = map.indexOf(';', at)
    if (semicolon === -1 || semicolon >= end) return 'unchanged'
    at = semicolon + 1
  }
  let generated = 0
  while (at < end && map[at] !== SEMICOLON) {
    const number = readNumber(map, at, end)
    if (number === undefined) return undefined
    generated += number.value
    if (generated >= column) return { start: at, end: number.end, text: writeNumber(number.value + length) }
    at = number.end
    while (at < end && map[at] !== COMMA && map[at] !== SEMICOLON) at++
    if (map[at] === COMMA) at++
  }
  return 'unchanged'
}

const COMMA = 0x2c
const SEMICOLON = 0x3b

interface Section {
  readonly offset: { readonly line: number; readonly column: number }
  readonly map: { readonly mappings: string }
}

/** Returns the sections of an index map with the insertion: those after it in its line move, and the one around it changes. */
function shiftSections(sections: readonly Section[], insertion: Insertion): readonly Section[] | undefined {
  const { line, column, length } = insertion
  const isBefore = ({ offset }: Section) => offset.line < line || (offset.line === line && offset.column < column)
  try {
    const around = sections.findLast(isBefore)
    return sections.map(section => {
      const { offset, map } = section
      if (section === around) {
        const inner = { line: line - offset.line, column: column - (offset.line === line ? offset.column : 0), length }
        return { ...section, map: { ...map, mappings: shiftText(map.mappings, inner) } }
      }
      if (isBefore(section) || offset.line !== line) return section
      return { ...section, offset: { ...offset, column: offset.column + length } }
    })
  } catch (error) {
    if (error instanceof TypeError) return undefined // not the sections of ECMA-426
    throw error
  }
}

function shiftText(mappings: string, insertion: Insertion): string {
  const bytes = Buffer.from(mappings, 'latin1')
  const edit = shiftMappings(bytes, 0, bytes.length, insertion)
  if (edit === undefined) throw new TypeError('invalid mappings')
  return edit === 'unchanged' ? mappings : mappings.slice(0, edit.start) + edit.text + mappings.slice(edit.end)
}

/** Reads a number in base64 VLQ (ECMA-426): five bits a digit, the lowest first, and the sign in the first bit. */
function readNumber(bytes: Buffer, start: number, end: number): { value: number; end: number } | undefined {
  let value = 0
  for (let at = start, scale = 1; at < end && at < start + 7; at++, scale *= 32) {
    const digit = DIGITS.indexOf(String.fromCharCode(bytes[at] ?? 0))
    if (digit === -1) return undefined
    value += (digit % 32) * scale
    if (digit < 32) return { value: value % 2 === 1 ? -(value - 1) / 2 : value / 2, end: at + 1 }
  }
  return undefined
}

function writeNumber(value: number): string {
  let rest = value < 0 ? -value * 2 + 1 : value * 2
  let text = ''
  do {
    const digit = rest % 32
    rest = Math.floor(rest / 32)
    text += DIGITS[rest > 0 ? digit + 32 : digit]
  } while (rest > 0)
  return text
}
