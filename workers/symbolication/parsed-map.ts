import { TraceMap, traceSegment } from '@jridgewell/trace-mapping'
import { type FunctionIndex, indexFunctions } from './function-index.ts'
import { originalPath } from './original-path.ts'

/** A frame's place in generated code: both count from 1, as stacks do. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** The place in its source that a generated one was made of. */
export interface OriginalPosition {
  readonly file: string
  readonly line: number
  readonly column: number
  /** The function around the place; '' outside of any, undefined where the source is not known or not understood. */
  readonly function: string | undefined
  /** What the source calls the thing at this place, where the map says so: at a call, the function that is called. */
  readonly name: string | undefined
  /** The line of the source, without its indentation. */
  readonly sourceLine: string | undefined
}

/** A source map, ready to be asked. */
export interface ParsedMap {
  /** Bytes of memory that it takes, about; grows as it is asked. */
  readonly bytes: number
  trace(position: Position): OriginalPosition | undefined
}

/** The map is not one, or would take more memory than there is for one. */
export class UnusableMap extends Error {
  override readonly name = 'UnusableMap'
}

const SOURCE_LINE_CHARACTERS = 200
const MAX_NAME_LENGTH = 200
/** Index maps within index maps. */
const MAX_NESTING = 4
/** An array of five numbers and its place in that of its line: 96 to 107 bytes, measured on maps of 1 to 20 MiB. */
const SEGMENT_BYTES = 104
const FUNCTION_BYTES = 150

/**
 * Reads a source map (ECMA-426): a plain one, or an index map, whose sections are read as they are asked for. Sections
 * that only name an address are left out: nothing is ever fetched. Throws UnusableMap.
 */
export function parseMap(text: string, limitBytes: number): ParsedMap {
  return readMap(parseJson(text), limitBytes, 0)
}

function readMap(value: unknown, limitBytes: number, depth: number): ParsedMap {
  if (!isObject(value)) throw new UnusableMap('a map is a JSON object')
  if (Array.isArray(value.sections)) {
    if (depth >= MAX_NESTING) throw new UnusableMap(`index maps are nested more than ${MAX_NESTING} deep`)
    return readIndexMap(value.sections, limitBytes, depth)
  }
  return readPlainMap(value, limitBytes)
}

function readPlainMap(map: Record<string, unknown>, limitBytes: number): ParsedMap {
  const { mappings } = map
  if (typeof mappings !== 'string') throw new UnusableMap('a map has mappings')
  const sources = listOf(map.sources)
  const contents = listOf(map.sourcesContent)
  const names = listOf(map.names)
  const sourceRoot = typeof map.sourceRoot === 'string' ? map.sourceRoot : ''
  let bytes = countSegments(mappings) * SEGMENT_BYTES + textBytes(sources) + textBytes(contents) + textBytes(names)
  if (bytes > limitBytes) throw new UnusableMap(`it takes about ${bytes} bytes of memory`)
  // It gets the mappings alone, since it would resolve every source as a URL.
  const tracer = new TraceMap({ version: 3, names: [], sources: [], mappings })
  const indexes = new Map<number, FunctionIndex | undefined>()

  function functionAt(source: number, content: string, path: string, offset: number): string | undefined {
    if (!indexes.has(source)) {
      const index = indexFunctions(content, path)
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
      // What is decoded is a running sum of what the client has sent: it may be anything.
      if (typeof path !== 'string' || !isCount(sourceLine) || !isCount(sourceColumn)) return undefined
      const file = originalPath(path, sourceRoot)
      const content = contents[source]
      const place = typeof content === 'string' ? lineAt(content, sourceLine) : undefined
      return {
        file,
        line: sourceLine + 1,
        column: sourceColumn + 1,
        function: place && functionAt(source, content as string, file, place.start + sourceColumn),
        name: name === undefined ? undefined : shortText(names[name], MAX_NAME_LENGTH),
        sourceLine: place?.text,
      }
    },
  }
}

interface Section extends Position {
  readonly value: unknown
  map?: ParsedMap | 'unusable'
}

function readIndexMap(values: readonly unknown[], limitBytes: number, depth: number): ParsedMap {
  const sections: Section[] = []
  for (const value of values) {
    if (!isObject(value) || !isObject(value.offset) || !isObject(value.map)) continue
    const { line, column } = value.offset
    if (!isCount(line) || !isCount(column)) continue
    sections.push({ line: line + 1, column: column + 1, value: value.map })
  }
  sections.sort((a, b) => a.line - b.line || a.column - b.column)

  /** A section that is no map says nothing; its neighbours do. */
  function mapOf(section: Section): ParsedMap | undefined {
    section.map ??= readSection(section.value)
    return section.map === 'unusable' ? undefined : section.map
  }

  function readSection(value: unknown): ParsedMap | 'unusable' {
    try {
      return readMap(value, limitBytes, depth + 1)
    } catch (error) {
      if (error instanceof UnusableMap) return 'unusable'
      throw error
    }
  }

  // Those that nobody asked for hold their texts all the same.
  const textSize = sections.reduce((sum, { value }) => sum + jsonBytes(value), 0)
  if (textSize > limitBytes) throw new UnusableMap(`it takes about ${textSize} bytes of memory`)
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

/** The map's own texts, the mappings among them. */
function jsonBytes(value: unknown): number {
  if (!isObject(value)) return 0
  const mappings = typeof value.mappings === 'string' ? value.mappings.length : 0
  const nested = Array.isArray(value.sections) ? value.sections.reduce((sum, { map }) => sum + jsonBytes(map), 0) : 0
  return mappings + nested + textBytes(listOf(value.sources)) + textBytes(listOf(value.sourcesContent))
}

/** Counted before they are decoded: a map of nothing but separators would take twenty times its size. */
function countSegments(mappings: string): number {
  let count = 1
  for (let i = 0; i < mappings.length; i++) {
    const code = mappings.charCodeAt(i)
    if (code === 44 || code === 59) count++
  }
  return count
}

/** Two bytes a character at most, and what the text takes itself. */
function textBytes(texts: readonly unknown[]): number {
  return texts.reduce<number>((sum, text) => sum + 24 + (typeof text === 'string' ? text.length * 2 : 0), 0)
}

/** Where a line begins in the text, and what of it is shown. Lines end as ECMA-426 says. */
function lineAt(content: string, line: number): { start: number; text: string } | undefined {
  const ends = /\r\n|[\n\r\u2028\u2029]/g
  let start = 0
  for (let i = 0; i < line; i++) {
    if (ends.exec(content) === null) return undefined
    start = ends.lastIndex
  }
  const end = ends.exec(content)?.index ?? content.length
  return { start, text: content.slice(start, end).trim().slice(0, SOURCE_LINE_CHARACTERS) }
}

function parseJson(text: string): unknown {
  // Some servers put this before JSON, so that no page can run it.
  const json = text.startsWith(")]}'") ? text.slice(text.indexOf('\n') + 1) : text
  try {
    return JSON.parse(json)
  } catch (error) {
    throw new UnusableMap('it is not JSON', { cause: error })
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
