import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SuiteReport } from './suite-reporter.ts'

/**
 * Prints the suites of a run of `.ci/run` as a table, the tests that passed only when run again, and the sums. The folder has,
 * for each command, its exit code and seconds (`<name>.ended`), what it printed (`<name>.log`) and the lines of the reporter
 * of vitest (`<name>.suites`). Exits with 1 if anything failed.
 */
const [folder = ''] = process.argv.slice(2)
const KNOWN = readFileSync(join(import.meta.dirname, '../../retried-tests.txt'), 'utf8')

interface Row extends SuiteReport {
  readonly why: string
}

const rows = readdirSync(folder)
  .filter(file => file.endsWith('.ended'))
  .flatMap(file => rowsOf(file.slice(0, -'.ended'.length)))
const table = [
  ['suite', 'passed', 'failed', 'skipped', 'seconds', 'why'],
  ...rows.map(row => [row.suite, row.passed, row.failed, row.skipped, Math.round(row.seconds), row.why].map(String)),
]
const widths = [0, 1, 2, 3, 4].map(i => Math.max(...table.map(cells => cells[i]?.length ?? 0)))
console.log('')
for (const cells of table)
  console.log(
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )

for (const test of rows.flatMap(({ retried }) => retried)) {
  console.log(`passed only when run again${KNOWN.includes(test) ? '' : ', and not in test/retried-tests.txt'}: ${test}`)
}
const sum = (of: 'passed' | 'failed') => rows.reduce((total, row) => total + row[of], 0)
console.log(`${sum('passed')} passed, ${sum('failed')} failed`)
process.exit(sum('failed') === 0 && sum('passed') > 0 ? 0 : 1)

/** A command without a report of vitest is one check. One that fails without a failed test counts as a failure of its own. */
function rowsOf(name: string): Row[] {
  const [status = '1', seconds = '0'] = readFileSync(join(folder, `${name}.ended`), 'utf8')
    .trim()
    .split(' ')
  const why = [...readFileSync(join(folder, `${name}.log`), 'utf8').matchAll(/^.*\bSKIPPED\b,?:? *(.*)$/gm)].map(
    ([, text]) => text,
  )
  const path = join(folder, `${name}.suites`)
  const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
  const suites: SuiteReport[] = lines.map(line => JSON.parse(line))
  const hasFailed = status !== '0' && suites.every(({ failed }) => failed === 0)
  if (suites.length === 0 || hasFailed) {
    const skipped = hasFailed || why.length === 0 ? 0 : 1
    const passed = hasFailed ? 0 : 1 - skipped
    const failed = hasFailed ? 1 : 0
    suites.push({ suite: name, passed, failed, skipped, seconds: Number(seconds), retried: [] })
  }
  return suites.map((suite, i) => ({ ...suite, why: i === 0 ? [...new Set(why)].join('; ') : '' }))
}
