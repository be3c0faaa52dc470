import { type ParserOptions, parse } from '@babel/parser'
import { MIB } from '../../../schemas/units.ts'
import { type NamedFunction, nameFunctions } from './name-functions.ts'

/** Parsing briefly takes about a hundred times the memory of the source. Hand-written sources are smaller. */
const SOURCE_LIMIT_CHARACTERS = MIB

/** The functions of one source. */
export interface FunctionIndex {
  /** Number of functions. Each takes about 150 bytes. */
  readonly size: number
  /** Returns the name of the innermost function around a position of the text; '' outside functions. */
  nameAt(position: number): string
}

/**
 * Finds the functions of a JavaScript, TypeScript or JSX source, depending on its path. Returns undefined if the source
 * cannot be parsed (another language, or too large).
 */
export function indexFunctions(source: string, path: string): FunctionIndex | undefined {
  if (source.length > SOURCE_LIMIT_CHARACTERS) return undefined
  for (const options of parserOptions(path)) {
    try {
      // The functions are sorted by start, an outer function before its inner ones.
      const functions = nameFunctions(parse(source, options).program)
      return { size: functions.length, nameAt: position => nameAt(functions, position) }
    } catch {
      // Try the next dialect: the only errors are syntax errors and a nesting that is too deep for the stack.
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

/** Returns the dialects to try. In `.ts`, `<T>x` is a cast; elsewhere it may be JSX. JavaScript comes before types. */
function parserOptions(path: string): ParserOptions[] {
  // A template of Vue or Svelte may parse as JSX, but without functions.
  if (/\.\w{1,10}$/.test(path) && !/\.[mc]?[jt]sx?$/i.test(path)) return []
  if (/\.[mc]?ts$/i.test(path)) return [withPlugins('typescript', 'decorators')]
  if (/\.tsx$/i.test(path)) return [withPlugins('typescript', 'jsx', 'decorators')]
  return [withPlugins('jsx', 'decorators'), withPlugins('typescript', 'jsx', 'decorators'), withPlugins('jsx', 'flow')]
}

function withPlugins(...names: ('typescript' | 'jsx' | 'flow' | 'decorators')[]): ParserOptions {
  return { ...COMMON, plugins: names.map(name => (name === 'decorators' ? 'decorators-legacy' : name)) }
}
