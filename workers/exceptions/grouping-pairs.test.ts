import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { KIB } from '../../schemas/units.ts'
import { identify } from '../../shared/grouping/fingerprint.ts'
import { cutStack } from './cut-stack.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'test/cases/grouping')
const PAGE = 'docs/api/findings.md'
const RIGHT_SHARE = 0.97

interface Exception {
  readonly type: string
  readonly message: string
  readonly stacktrace: string
}

/** Two exceptions, and whether an engineer wants them in one finding (test/cases/grouping/README.md). */
interface Pair {
  readonly label: string
  readonly same: boolean
  /** Why the verdict is arguable. Such a pair is counted apart. */
  readonly disputed?: string
  readonly a: Exception
  readonly b: Exception
}

/** Rows of the table on the page. */
const FILES: Readonly<Record<string, string>> = {
  bundles: 'JavaScript: bundles by esbuild, Vite, webpack, Rspack, Parcel, Next.js',
  node: 'JavaScript: Node.js',
  go: 'Go',
  java: 'Java',
  php: 'PHP',
  python: 'Python',
  ruby: 'Ruby',
  rust: 'Rust',
  dotnet: '.NET, written by hand',
  given: 'Many languages, written by hand',
}
const BY_HAND = ['dotnet', 'given']
const files = Object.keys(FILES)

it('has pairs with unique labels and two different exceptions', () => {
  expect(readdirSync(FOLDER).filter(name => name.endsWith('.json'))).toEqual(files.map(file => `${file}.json`).sort())
  for (const file of files) {
    const labels = pairsOf(file).map(({ label }) => label)
    expect(labels, file).toEqual([...new Set(labels)])
    for (const { same, disputed, a, b, label } of pairsOf(file)) {
      const values = [a, b].flatMap(({ type, message, stacktrace }) => [type, message, stacktrace])
      expect([typeof same, ...values.map(value => typeof value)], label).toEqual([
        'boolean',
        ...Array(6).fill('string'),
      ])
      if (!disputed) expect(a, label).not.toEqual(b)
    }
  }
  const recorded = files.filter(file => !BY_HAND.includes(file)).flatMap(pairsOf)
  expect(recorded.length).toBeGreaterThan(200)
})

it.each(files)('groups at least 97 of 100 pairs of %s as an engineer does', file => {
  const undisputed = pairsOf(file).filter(pair => !pair.disputed)
  const wrong = undisputed
    .filter(pair => !isRight(pair))
    .map(({ label, same }) => `${same ? 'same' : 'differ'}: ${label}`)
  expect(wrong.length / undisputed.length, wrong.join('\n')).toBeLessThanOrEqual(1 - RIGHT_SHARE)
})

it(`has its results in ${PAGE}`, () => {
  const rows = files.map(file => {
    const [disputed, undisputed] = [true, false].map(is =>
      pairsOf(file).filter(pair => (pair.disputed !== undefined) === is),
    )
    return [FILES[file], shareOf(undisputed), shareOf(disputed)]
  })
  const table = [['Pairs', 'Right', 'Disputed, and right'], ['---', '---', '---'], ...rows]
  const page = readFileSync(join(ROOT, PAGE), 'utf8')
  // Columns of the page are padded.
  const text = page.replace(/ +/g, ' ').replace(/-{3,}/g, '---')
  expect(text).toContain(table.map(cells => `| ${cells.join(' | ')} |`).join('\n'))
})

function shareOf(pairs: readonly Pair[] = []): string {
  return pairs.length === 0 ? 'none' : `${pairs.filter(isRight).length} of ${pairs.length}`
}

function pairsOf(file: string): readonly Pair[] {
  return JSON.parse(readFileSync(join(FOLDER, `${file}.json`), 'utf8'))
}

function isRight({ a, b, same }: Pair): boolean {
  return (idOf(a) === idOf(b)) === same
}

/** Returns the finding, of the stack as the stage `exceptions` bounds it. */
function idOf(exception: Exception): string {
  const bytes = Buffer.from(exception.stacktrace)
  const stacktrace = cutStack(bytes, 0, bytes.length, 32 * KIB)
  return identify({ workspaceId: 'w', surfaceId: 's', serviceName: 'shop', ...exception, stacktrace }).id
}
