import { TraceMap, traceSegment } from '@jridgewell/trace-mapping'
import { type FunctionIndex, indexFunctions } from './function-index.ts'
import { originalPath } from './original-path.ts'

/** Position of a stack frame in generated code. Line and column count from 1, as in stacks. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** Position in the source from which generated code was made. */
export interface OriginalPosition {
  readonly file: string
  readonly line: number
  readonly column: number
  /**
   * Name of the function around the position; '' outside functions, undefined if the source is missing or unparsable.
   */
  readonly function: string | undefined
  /** Name in the source at this position, if the map has one. At a call it is the called function. */
  readonly name: string | undefined
  /** The source line without indentation. */
  readonly sourceLine: string | undefined
  /** This line with those around it, without the indentation that all share. `from` is the number of the first. */
  readonly sourceLines: { readonly from: number; readonly lines: readonly string[] } | undefined
}

/** A source map that traces positions. */
export interface ParsedMap {
  /** Approximate memory in bytes. It grows with traced positions. */
  readonly bytes: number
  trace(position: Position): OriginalPosition | undefined
}

/**
 * Finds the functions of a source. Returns undefined if that is impossible, and `later` if there is no time for it now:
 * the position then has no function, and the next position in this source tries again.
 */
export type SourceIndexer = (source: string, path: string) => FunctionIndex | undefined | 'later'

/** Thrown for text that is not a source map or would need more memory than a map may use. */
export class UnusableMap extends Error {
  override readonly name = 'UnusableMap'
}

const SOURCE_LINE_CHARACTERS = 200
/** Lines before and after the one of a frame. */
const LINES_AROUND = 5
const MAX_NAME_LENGTH = 200
/** Depth of index maps within index maps. */
const MAX_NESTING = 4
/**
 * An array of five numbers and its entry in the array of its line: 96 to 107 bytes, measured on maps of 1 to 20 MiB.
 */
const SEGMENT_BYTES = 104
const FUNCTION_BYTES = 150

/**
 * Reads a source map (ECMA-426). Sections of an index map are read when a position in them is traced. Sections that
 * only contain a URL are ignored, because nothing is fetched. Throws UnusableMap.
 */
export function parseMap(text: string, limitBytes: number, indexer: SourceIndexer = indexFunctions): ParsedMap {
  return readMap(parseJson(text), { limitBytes, indexer }, 0)
}

interface Reading {
  readonly limitBytes: number
  readonly indexer: SourceIndexer
}

function readMap(value: unknown, reading: Reading, depth: number): ParsedMap {
  if (!isObject(value)) throw new UnusableMap('the map is not a JSON object')
  if (Array.isArray(value.sections)) {
    if (depth >= MAX_NESTING) throw new UnusableMap(`index maps are nested more than ${MAX_NESTING} deep`)
    return readIndexMap(value.sections, reading, depth)
  }
  return readPlainMap(value, reading)
}

function readPlainMap(map: Record<string, unknown>, { limitBytes, indexer }: Reading): ParsedMap {
  const { mappings } = map
  if (typeof mappings !== 'string') throw new UnusableMap('the map has no mappings')
  const sources = listOf(map.sources)
  const contents = listOf(map.sourcesContent)
  const names = listOf(map.names)
  const sourceRoot = typeof map.sourceRoot === 'string' ? map.sourceRoot : ''
  let bytes = countSegments(mappings) * SEGMENT_BYTES + textBytes(sources) + textBytes(contents) + textBytes(names)
  if (bytes > limitBytes) throw new UnusableMap(`the map needs about ${bytes} bytes of memory`)
  // TraceMap gets only the mappings, because it would resolve every source as a URL.
  const tracer = new TraceMap({ version: 3, names: [], sources: [], mappings })
  const indexes = new Map<number, FunctionIndex | undefined>()

  function functionAt(source: number, content: string, path: string, offset: number): string | undefined {
    if (!indexes.has(source)) {
      const index = indexer(content, path)
      if (index === 'later') return undefined
      indexes.set(source, index)
      bytes += (index?.size ?? 0) * FUNCTION_BYTES
    }
    return indexes.get(source)?.nameAt(offset)
  }

  return {
    get bytes() {
      return bytes
    },
    trace({ line, column }) {
      const segment = traceSegment(tracer, line - 1, column - 1)
      if (segment === null || segment.length === 1) return undefined
      const [, source, sourceLine, sourceColumn, name] = segment
      const path = sources[source]
      // Decoded numbers are running sums of client input, so they can have any value.
      if (typeof path !== 'string' || !isCount(sourceLine) || !isCount(sourceColumn)) return undefined
      const file = originalPath(path, sourceRoot)
      const content = contents[source]
      const sourceText = typeof content === 'string' ? linesAt(content, sourceLine) : undefined
      return {
        file,
        line: sourceLine + 1,
        column: sourceColumn + 1,
        function: sourceText && functionAt(source, content as string, file, sourceText.start + sourceColumn),
        name: name === undefined ? undefined : shortText(names[name], MAX_NAME_LENGTH),
        sourceLine: sourceText?.text,
        sourceLines: sourceText && { from: sourceLine + 1 - sourceText.before, lines: sourceText.lines },
      }
    },
  }
}

interface Section extends Position {
  readonly value: unknown
  map?: ParsedMap | 'unusable'
}

function readIndexMap(values: readonly unknown[], reading: Reading, depth: number): ParsedMap {
  const sections: Section[] = []
  for (const value of values) {
    if (!isObject(value) || !isObject(value.offset) || !isObject(value.map)) continue
    const { line, column } = value.offset
    if (!isCount(line) || !isCount(column)) continue
    sections.push({ line: line + 1, column: column + 1, value: value.map })
  }
  sections.sort((a, b) => a.line - b.line || a.column - b.column)

  /** Returns the map of a section, or undefined if it is unusable. Other sections stay usable. */
  function mapOf(section: Section): ParsedMap | undefined {
    section.map ??= readSection(section.value)
    return section.map === 'unusable' ? undefined : section.map
  }

  function readSection(value: unknown): ParsedMap | 'unusable' {
    try {
      return readMap(value, reading, depth + 1)
    } catch (error) {
      if (error instanceof UnusableMap) return 'unusable'
      throw error
    }
  }

  // Sections that are not read yet keep their texts in memory too.
  const textSize = sections.reduce((sum, { value }) => sum + jsonBytes(value), 0)
  if (textSize > reading.limitBytes) throw new UnusableMap(`the map needs about ${textSize} bytes of memory`)
  return {
    get bytes() {
      return sections.reduce((sum, { map }) => sum + (typeof map === 'object' ? map.bytes : 0), textSize)
    },
    trace({ line, column }) {
      const section = sections.findLast(({ line: at, column: from }) => at < line || (at === line && from <= column))
      if (section === undefined) return undefined
      const own = {
        line: line - section.line + 1,
        column: line === section.line ? column - section.column + 1 : column,
      }
      return mapOf(section)?.trace(own)
    },
  }
}

/** Returns the size of the texts of a map, including its mappings. */
function jsonBytes(value: unknown): number {
  if (!isObject(value)) return 0
  const mappings = typeof value.mappings === 'string' ? value.mappings.length : 0
  const nested = Array.isArray(value.sections) ? value.sections.reduce((sum, { map }) => sum + jsonBytes(map), 0) : 0
  return mappings + nested + textBytes(listOf(value.sources)) + textBytes(listOf(value.sourcesContent))
}

/** Counts segments before decoding, because a map of only separators would take twenty times its size. */
function countSegments(mappings: string): number {
  let count = 1
  for (let i = 0; i < mappings.length; i++) {
    const code = mappings.charCodeAt(i)
    if (code === 44 || code === 59) count++
  }
  return count
}

/** Estimates the memory of texts: at most two bytes a character, and the overhead of a string. */
function textBytes(texts: readonly unknown[]): number {
  return texts.reduce<number>((sum, text) => sum + 24 + (typeof text === 'string' ? text.length * 2 : 0), 0)
}

/** A line of a source and those around it, as they are shown. */
interface FoundLines {
  /** Where the line starts in the source. */
  readonly start: number
  readonly text: string
  readonly lines: readonly string[]
  /** Number of lines before it. */
  readonly before: number
}

/** Finds a line and those around it. Lines end as in ECMA-426. */
function linesAt(content: string, line: number): FoundLines | undefined {
  const ends = /\r\n|[\n\r\u2028\u2029]/g
  const starts = [0]
  for (let i = 0; i < line; i++) {
    if (ends.exec(content) === null) return undefined
    starts.push(ends.lastIndex)
    if (starts.length > LINES_AROUND + 1) starts.shift()
  }
  const before = starts.length - 1
  let [at = 0] = starts
  ends.lastIndex = at
  const lines: string[] = []
  for (let end: RegExpExecArray | null; lines.length <= before + LINES_AROUND; at = ends.lastIndex) {
    end = ends.exec(content)
    lines.push(content.slice(at, end?.index))
    if (end === null || (ends.lastIndex === content.length && lines.length > before)) break
  }
  const text = (lines[before] ?? '').trim().slice(0, SOURCE_LINE_CHARACTERS)
  return { start: starts[before] ?? 0, text, lines: withoutIndentation(lines), before }
}

function withoutIndentation(lines: readonly string[]): string[] {
  const cut = lines.map(line => line.slice(0, 2 * SOURCE_LINE_CHARACTERS).trimEnd())
  const indents = cut.filter(line => line !== '').map(line => line.search(/\S/))
  const indent = Math.min(...indents, SOURCE_LINE_CHARACTERS)
  return cut.map(line => line.slice(indent, indent + SOURCE_LINE_CHARACTERS))
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new UnusableMap('the map is not JSON', { cause: error })
  }
}

function shortText(value: unknown, limit: number): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, limit) : undefined
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
