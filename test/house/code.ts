import { readFileSync } from 'node:fs'
import { dirname, posix } from 'node:path'
import { parse } from '@babel/parser'
import { pluginsOf, ROOT, trackedFiles } from './prose.ts'

/** Rooms whose code is the product, in the order of their layers. */
export const PRODUCT = [
  'schemas',
  'shared',
  'clickhouse',
  'letters',
  'findings',
  'promql',
  'alerts',
  'ingest',
  'workers',
  'api',
  'console',
  'cli',
]

/** A function and the lines from its first to its last. */
interface MeasuredFunction {
  readonly file: string
  readonly name: string
  readonly lines: number
}

/** A name that a file exports. */
interface Export {
  readonly file: string
  readonly name: string
}

/** What a file of code has and takes. */
export interface Code {
  readonly file: string
  readonly exports: readonly string[]
  readonly functions: readonly MeasuredFunction[]
  /** Files and the names that are taken from them; `*` is all. Type imports and re-exports count. */
  readonly imports: readonly Export[]
}

/** Reads every file of code under version control. */
export function readAllCode(root = ROOT): Code[] {
  return trackedFiles(root)
    .filter(file => /\.(tsx?|mjs|js)$/.test(file))
    .map(file => readCode(file, readFileSync(root + file, 'utf8')))
}

/** Whether a file is code of the product: no test of it, and not generated. */
export function isProduct(file: string): boolean {
  return /(?<!\.test)\.tsx?$/.test(file) && PRODUCT.includes(file.split('/', 1)[0] ?? '')
}

/** Returns the named exports that no other file imports. */
export function unusedExports(all: readonly Code[]): Export[] {
  const used = new Set(all.flatMap(({ imports }) => imports.map(({ file, name }) => `${file}#${name}`)))
  return all.flatMap(({ file, exports }) =>
    used.has(`${file}#*`) ? [] : exports.filter(name => !used.has(`${file}#${name}`)).map(name => ({ file, name })),
  )
}

/** Reads one file of code. */
function readCode(file: string, text: string): Code {
  const exports: string[] = []
  const functions: MeasuredFunction[] = []
  const imports: Export[] = []
  const { program } = parse(text, { sourceType: 'module', plugins: pluginsOf(file), errorRecovery: true })
  walk(program as unknown as Node, undefined, (node, name) => {
    if (FUNCTIONS.has(node.type)) functions.push({ file, name: name ?? 'a function', lines: linesOf(node) })
    if (node.type === 'ExportNamedDeclaration') exports.push(...namesOf(node))
    const source = SOURCES.has(node.type) ? (node.source?.value ?? node.argument?.value) : undefined
    if (typeof source !== 'string' || !source.startsWith('.')) return
    const from = posix.normalize(posix.join(dirname(file), source))
    imports.push(...takenBy(node).map(taken => ({ file: from, name: taken })))
  })
  return { file, exports, functions, imports }
}

interface Node {
  readonly type: string
  readonly name?: string
  readonly value?: unknown
  readonly id?: Node | null
  readonly key?: Node
  readonly local?: Node
  readonly exported?: Node
  readonly imported?: Node
  readonly declaration?: (Node & { readonly declarations?: readonly Node[] }) | null
  readonly specifiers?: readonly Node[]
  readonly source?: Node | null
  readonly argument?: Node | null
  readonly qualifier?: (Node & { readonly left?: Node }) | null
  readonly loc?: { readonly start: { readonly line: number }; readonly end: { readonly line: number } }
}

const FUNCTIONS = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
  'ObjectMethod',
  'ClassMethod',
  'ClassPrivateMethod',
])
const SOURCES = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
])
const IGNORED = new Set(['loc', 'leadingComments', 'innerComments', 'trailingComments', 'errors'])

/** Visits a tree with the name under which each node is known: its own, or that of what it is assigned to. */
function walk(node: unknown, name: string | undefined, visit: (node: Node, name: string | undefined) => void): void {
  if (Array.isArray(node)) for (const item of node) walk(item, name, visit)
  if (typeof node !== 'object' || node === null || !('type' in node)) return
  const known = node as Node
  const own = known.id?.name ?? known.key?.name ?? (FUNCTIONS.has(known.type) ? name : undefined)
  visit(known, own)
  const inner = own ?? (known.type === 'CallExpression' ? name : undefined)
  for (const [key, value] of Object.entries(node)) if (!IGNORED.has(key)) walk(value, inner, visit)
}

function linesOf({ loc }: Node): number {
  return loc ? loc.end.line - loc.start.line + 1 : 0
}

function namesOf({ declaration, specifiers = [] }: Node): string[] {
  const declared = declaration?.declarations?.map(({ id }) => id?.name) ?? [declaration?.id?.name]
  return [...declared, ...specifiers.map(({ exported }) => exported?.name)].filter(name => name !== undefined)
}

function takenBy(node: Node): string[] {
  if (node.type === 'TSImportType') return [(node.qualifier?.left ?? node.qualifier)?.name ?? '*']
  if (node.type === 'ImportExpression' || node.type === 'ExportAllDeclaration') return ['*']
  return (node.specifiers ?? []).map(specifier => {
    if (specifier.type === 'ImportNamespaceSpecifier') return '*'
    return (specifier.type === 'ExportSpecifier' ? specifier.local : specifier.imported)?.name ?? 'default'
  })
}
