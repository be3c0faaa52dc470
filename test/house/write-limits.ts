import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as limits from '../../schemas/http/limits.ts'
import { ROOT } from './prose.ts'

/** The page with the table of limits. `npm run generate:docs` writes it. */
export const LIMITS_PAGE = 'docs/api/requests.md'

const BEGIN = '<!-- limits: npm run generate:docs -->\n\n'
const END = '\n\n<!-- end of limits -->'

/** Returns the page with the table of the limits of schemas/http/limits.ts between its markers. */
export function withLimits(page: string): string {
  const [begin, end] = [page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END)]
  if (begin < BEGIN.length || end < begin) throw new Error(`${LIMITS_PAGE} has no markers of limits`)
  return page.slice(0, begin) + table() + page.slice(end)
}

/** Returns the table with the widths that Prettier gives to its columns. */
function table(): string {
  const rows = [['limit', 'at most'], ...limitRows()]
  const widths = [0, 1].map(column => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const [head, ...body] = rows.map(row => `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`)
  return [head, `| ${widths.map(width => '-'.repeat(width)).join(' | ')} |`, ...body].join('\n')
}

function limitRows(): string[][] {
  const source = readFileSync(`${ROOT}schemas/http/limits.ts`, 'utf8')
  const named = [...source.matchAll(/^\/\*\* Maximum bytes of (.*)\. \*\/\nexport const (\w+)/gm)]
  return named.map(([, text = '', name = '']) => {
    const bytes: unknown = Reflect.get(limits, name)
    if (typeof bytes !== 'number') throw new Error(`${name} is not a number of bytes`)
    return [text, limits.formatBytes(bytes)]
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(ROOT + LIMITS_PAGE, withLimits(readFileSync(ROOT + LIMITS_PAGE, 'utf8')))
}
