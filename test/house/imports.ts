import { readFileSync } from 'node:fs'
import { dirname, posix } from 'node:path'
import { parse } from '@babel/parser'
import { pluginsOf, ROOT, trackedFiles } from './prose.ts'

/** One import of a file of this repository by another, type imports included. */
export interface Import {
  readonly from: string
  readonly line: number
  readonly to: string
}

/** Returns the imports between the files of this repository: static ones, re-exports and `import()`. */
export function allImports(): Import[] {
  return trackedFiles()
    .filter(file => /\.(tsx?|mjs|js)$/.test(file))
    .flatMap(importsOf)
}

function importsOf(from: string): Import[] {
  const { program } = parse(readFileSync(ROOT + from, 'utf8'), {
    sourceType: 'module',
    plugins: pluginsOf(from),
    errorRecovery: true,
  })
  return sourcesIn(program)
    .filter(({ path }) => path.startsWith('.'))
    .map(({ path, line }) => ({ from, line, to: posix.normalize(posix.join(dirname(from), path)) }))
}

interface Source {
  readonly path: string
  readonly line: number
}

/** Looks through the whole tree: an `import()` may be anywhere, in a type too. */
function sourcesIn(node: unknown): Source[] {
  if (Array.isArray(node)) return node.flatMap(sourcesIn)
  if (typeof node !== 'object' || node === null || !('type' in node)) return []
  const own = sourceOf(node as Node)
  const inner = Object.entries(node).flatMap(([name, value]) => (IGNORED.has(name) ? [] : sourcesIn(value)))
  return own ? [own, ...inner] : inner
}

interface Node {
  readonly type: string
  readonly loc?: { readonly start: { readonly line: number } }
  readonly source?: { readonly value?: unknown } | null
  readonly argument?: { readonly value?: unknown } | null
}

const IGNORED = new Set(['loc', 'leadingComments', 'innerComments', 'trailingComments', 'errors'])
const IMPORTS = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
])

function sourceOf(node: Node): Source | undefined {
  if (!IMPORTS.has(node.type)) return undefined
  const path = node.source?.value ?? node.argument?.value
  return typeof path === 'string' ? { path, line: node.loc?.start.line ?? 0 } : undefined
}
