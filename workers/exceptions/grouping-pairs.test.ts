import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const FOLDER = join(import.meta.dirname, '../../test/cases/grouping')

interface Exception {
  readonly type: string
  readonly message: string
  readonly stacktrace: string
}

/** Two exceptions, and whether an engineer wants them in one finding (test/cases/grouping/README.md). */
interface Pair {
  readonly label: string
  readonly language: string
  readonly same: boolean
  /** Why the verdict is arguable. Such a pair is counted apart. */
  readonly disputed?: string
  readonly a: Exception
  readonly b: Exception
}

const files = readdirSync(FOLDER).filter(name => name.endsWith('.json'))
const pairs = files.flatMap(file =>
  (JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Pair[]).map(pair => ({ ...pair, file })),
)

it('has pairs with unique labels and two different exceptions', () => {
  const labels = pairs.map(({ file, label }) => `${file}: ${label}`)
  expect(labels).toEqual([...new Set(labels)])
  for (const { same, disputed, a, b, label } of pairs) {
    expect(
      [typeof same, ...[a, b].flatMap(x => [typeof x.type, typeof x.message, typeof x.stacktrace])],
      label,
    ).toEqual(['boolean', ...Array(6).fill('string')])
    if (!disputed) expect(a, label).not.toEqual(b)
  }
  expect(pairs.filter(({ file }) => file !== 'given.json' && file !== 'dotnet.json').length).toBeGreaterThan(200)
})
