import { type ParserOptions, parse } from '@babel/parser'
import { nameFunctions } from './name-functions.ts'

/** Parsing takes about a hundred times the source's memory for a moment; no source that a person wrote is larger. */
const SOURCE_LIMIT_CHARACTERS = 1024 * 1024

/** A function in a source: positions in the text, and what a reader calls it. */
export interface NamedFunction {
  readonly start: number
  readonly end: number
  readonly name: string
}

/** The functions of one source. */
export interface FunctionIndex {
  /** How many there are; each takes about 150 bytes. */
  readonly size: number
  /** The innermost function around a position of the text; '' outside of any. */
  nameAt(position: number): string
}

/**
 * Finds the functions of a source: JavaScript, TypeScript or JSX, by its path. Undefined where it cannot be parsed at
 * all (another language, or too large).
 */
export function indexFunctions(source: string, path: string): FunctionIndex | undefined {
  if (source.length > SOURCE_LIMIT_CHARACTERS) return undefined
  for (const options of parserOptions(path)) {
    try {
      // Sorted by start, an outer function before those within it.
      const functions = nameFunctions(parse(source, options).program)
      return { size: functions.length, nameAt: position => nameAt(functions, position) }
    } catch {
      // Not in this dialect. Only syntax errors and a nesting too deep for the stack end up here, and both mean that.
    }
  }
  return undefined
}

function nameAt(functions: readonly NamedFunction[], position: number): string {
  let innermost = ''
  for (const { start, end, name } of functions) {
    if (start > position) break
    if (position < end) innermost = name
  }
  return innermost
}

const COMMON: ParserOptions = {
  sourceType: 'unambiguous',
  errorRecovery: true,
  allowReturnOutsideFunction: true,
  allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true,
  allowSuperOutsideMethod: true,
  allowUndeclaredExports: true,
  attachComment: false,
}

/** In `.ts`, `<T>x` is a cast; elsewhere it may be JSX. JavaScript is tried as such first, then with types. */
function parserOptions(path: string): ParserOptions[] {
  // A template of Vue or Svelte may pass for JSX, and would tell of no function.
  if (/\.\w{1,10}$/.test(path) && !/\.[mc]?[jt]sx?$/i.test(path)) return []
  if (/\.[mc]?ts$/i.test(path)) return [withPlugins('typescript', 'decorators')]
  if (/\.tsx$/i.test(path)) return [withPlugins('typescript', 'jsx', 'decorators')]
  return [withPlugins('jsx', 'decorators'), withPlugins('typescript', 'jsx', 'decorators'), withPlugins('jsx', 'flow')]
}

function withPlugins(...names: ('typescript' | 'jsx' | 'flow' | 'decorators')[]): ParserOptions {
  return { ...COMMON, plugins: names.map(name => (name === 'decorators' ? 'decorators-legacy' : name)) }
}
