import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Code, isProduct, PRODUCT, readAllCode, unusedExports } from './code.ts'
import { ROOT, trackedFiles } from './prose.ts'

/**
 * Prints how much there is to understand: `npm run house:count`, or with `-- directory` that of another checkout.
 * Files and lines are those of TypeScript, and of Lua in the product. Generated code counts nowhere, and neither does deploy/ as
 * product.
 */

const FUNCTION_LINES = 60
/** The list of ideas that a reader has to know between the socket and the row, one item or row of a table each. */
const CONCEPTS = 'docs/concepts.md'

const root = process.argv[2] ? `${resolve(process.argv[2])}/` : ROOT
const files = trackedFiles(root)
const text = (file: string) => readFileSync(root + file, 'utf8')
const all = readAllCode(root)
const product = all.filter(({ file }) => isProduct(file))
const inProduct = files.filter(
  file => /\.(tsx?|lua|sql)$/.test(file) && PRODUCT.includes(file.split('/', 1)[0] ?? '') && !isTest(file),
)
const unused = unusedExports(all)
const long = functionsOver(all)
const lua = inProduct.filter(file => file.endsWith('.lua'))
const counted = [...product.map(({ file }) => file), ...lua]
const keys = keyFamilies(product)
const { tables, views } = createdTables()

print('product', lines(counted))
for (const room of PRODUCT) {
  print(`  ${room}`, lines(counted.filter(file => file.startsWith(`${room}/`))))
}
print('  of it Lua', lines(lua))
print('SQL of the product', lines(inProduct.filter(file => file.endsWith('.sql'))))
print('deploy', lines(code(file => file.startsWith('deploy/') && !isTest(file))))
print('tests', lines(code(isTest)))
const beside = code(file => isTest(file) && !file.startsWith('test/'))
print('  beside the code', lines(beside))
print('  test/', lines(code(file => file.startsWith('test/'))))
print('bench, with its tests, counted above too', lines(code(file => file.startsWith('bench/'))))
print('exports of the product', `${product.flatMap(({ exports }) => exports).length}`)
print('  that no file imports', `${unused.filter(({ file }) => isProduct(file)).length}`)
print('  of other code, that no file imports', `${unused.filter(({ file }) => !isProduct(file)).length}`)
print(`functions over ${FUNCTION_LINES} lines`, `${long.filter(({ file }) => isProduct(file)).length}`)
print('  in deploy, test and bench', `${long.filter(({ file }) => !isProduct(file)).length}`)
print('settings', `${text('deploy/env.example').match(/^#?[A-Z0-9_]+=/gm)?.length ?? 0}`)
print('Redis key families', `${keys.length}, ${keys.filter(isOfDirectory).length} of them in the directory`)
print('places with Lua', foldersOf([...lua, ...inProduct.filter(hasLua)]))
print('ClickHouse', `${tables.size} tables, ${views.size} materialized views`)
print('product files that name partitions', `${inProduct.filter(file => /partition/i.test(text(file))).length}`)
print('words of Markdown', `${files.filter(file => file.endsWith('.md')).reduce((sum, file) => sum + words(file), 0)}`)
print('concepts from socket to row', existsSync(root + CONCEPTS) ? `${concepts()}` : `no ${CONCEPTS}`)

function print(name: string, value: string): void {
  console.log(`${name.padEnd(44)}${value}`)
}

function isTest(file: string): boolean {
  return file.startsWith('test/') || /\.test\.tsx?$/.test(file)
}

/** Whether a file of TypeScript has a script of Redis in a string. */
function hasLua(file: string): boolean {
  return /\.tsx?$/.test(file) && /redis\.p?call\([^)]*\b(?:KEYS|ARGV)\[/.test(text(file))
}

function foldersOf(found: readonly string[]): string {
  return `${found.length} files in ${new Set(found.map(file => dirname(file))).size} folders`
}

function code(isCounted: (file: string) => boolean): string[] {
  return files.filter(file => /\.(tsx?|mjs|js)$/.test(file) && isCounted(file))
}

function lines(counted: readonly string[]): string {
  const sum = counted.reduce((total, file) => total + text(file).split('\n').length - 1, 0)
  return `${sum.toLocaleString('en')} lines in ${counted.length.toLocaleString('en')} files`
}

function words(file: string): number {
  return text(file).match(/\S+/g)?.length ?? 0
}

/** Tests are left out: the callback of a `describe` is no function to read as one. */
function functionsOver(counted: readonly Code[]): { file: string }[] {
  return counted
    .flatMap(({ functions }) => functions)
    .filter(({ file, lines: length }) => length > FUNCTION_LINES && !/\.test\.tsx?$/.test(file))
}

/** Returns the templates of keys, without their parameters: texts that begin with `penstock:` or with such a text. */
function keyFamilies(counted: readonly Code[]): string[] {
  const found = counted.flatMap(({ file }) => {
    const source = text(file)
    if (!/penstock:\{|DIRECTORY_ROOT/.test(source)) return []
    const literals = source.matchAll(/(?:'(penstock:[^']*)'|`((?:penstock:|\$\{\w+\}:)[^`]*)`)/g)
    const roots = source.matchAll(/(?:const|let) (\w+) = [`'](?:penstock:|\$\{\w+\}:)[^`']*[`']/g)
    const isRoot = new Set([...roots].map(([, name]) => `\${${name}}`).concat(`\${DIRECTORY_ROOT}`))
    return [...literals]
      .map(([, plain, template]) => plain ?? template ?? '')
      .filter(key => key.startsWith('penstock:') || isRoot.has(key.slice(0, key.indexOf('}') + 1)))
      .map(key => (key.startsWith('penstock:') ? key : `${file} ${key}`).replaceAll(/\$\{[^}]*\}+/g, '*'))
  })
  return [...new Set(found)]
}

function isOfDirectory(key: string): boolean {
  return key.startsWith('shared/directory/') || key.startsWith('shared/backup/')
}

function createdTables(): { tables: Set<string>; views: Set<string> } {
  const schema = files.filter(file => file.endsWith('.sql')).map(text)
  const names = (pattern: RegExp) =>
    new Set(schema.flatMap(sql => [...sql.matchAll(pattern)].map(([, name = '']) => name)))
  return {
    tables: names(/^CREATE TABLE (?:IF NOT EXISTS )?(\w+)/gm),
    views: names(/^CREATE MATERIALIZED VIEW (?:IF NOT EXISTS )?(\w+)/gm),
  }
}

function concepts(): number {
  const rows = text(CONCEPTS).split('\n')
  const items = rows.filter(row => /^([-*]|\d+\.) /.test(row))
  const cells = rows.filter((row, i) => row.startsWith('| ') && !/^\|[ :-]*-/.test(rows[i + 1] ?? ''))
  return items.length + cells.length
}
