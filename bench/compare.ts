import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { figureText } from './report/figure-text.ts'
import type { BenchRun } from './report/report.ts'
import { summarize } from './report/statistics.ts'
import { textTable } from './report/table.ts'

/**
 * Runs scenarios in two checkouts alternately, each with its own bench, and prints medians and ratios of CPU times, latencies and
 * bytes:
 * `node bench/compare.ts BEFORE AFTER [--rounds 5] [--quick] [SCENARIO …]`.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' }, quick: { type: 'boolean', default: false } },
})
const [before, after, ...named] = positionals
if (before === undefined || after === undefined) throw new Error('two directories of checkouts are needed')
const scenarios = named.length > 0 ? named : ['pipeline', 'part-load', 'fairness', 'trace-read', 'replay']
const dir = mkdtempSync(join(tmpdir(), 'penstock-compare-'))
console.error(`figures of each run: ${dir}`)

/** Runs a scenario and returns its medians: the CPU time of each row, and every latency. */
function figuresOf(checkout: string, scenario: string, round: number, side: string): Map<string, number> {
  const json = join(dir, `${scenario}-${round}-${side}.json`)
  const args = ['run', '--silent', 'bench', '--', scenario, '--json', json, ...(values.quick ? ['--quick'] : [])]
  spawnSync('npm', args, { cwd: resolve(checkout), stdio: ['ignore', 'ignore', 'inherit'] })
  const run = JSON.parse(readFileSync(json, 'utf8')) as BenchRun
  const figures = new Map<string, number>()
  for (const { name, machine, rows } of run.scenarios) {
    for (const reason of machine?.void ?? []) console.error(`VOID: ${name}, round ${round}, ${side}: ${reason}`)
    for (const row of rows) {
      if (/CPU|p50|p99|bytes a/.test(`${row.name} ${row.unit}`))
        figures.set(`${row.name} (${row.unit})`, row.value.median)
      const { 'load generator': _load, ...own } = row.cpu?.seconds ?? {}
      const seconds = Object.values(own).reduce((sum, one) => sum + one, 0)
      if (seconds > 0) figures.set(`${row.name} (CPU s per ${row.cpu?.per})`, seconds)
    }
  }
  return figures
}

for (const scenario of scenarios) {
  const rounds = Array.from({ length: Number(values.rounds) }, (_, i) => ({
    was: figuresOf(before, scenario, i + 1, 'before'),
    is: figuresOf(after, scenario, i + 1, 'after'),
  }))
  const median = (figures: readonly (number | undefined)[]) =>
    summarize(figures.filter(figure => figure !== undefined)).median
  const common = [...(rounds[0]?.was.keys() ?? [])].filter(name => rounds[0]?.is.has(name))
  const rows = common.map(name => {
    const [was, is] = [
      median(rounds.map(round => round.was.get(name))),
      median(rounds.map(round => round.is.get(name))),
    ]
    return [name, figureText(was), figureText(is), (is / was).toFixed(3)]
  })
  console.log(textTable({ head: [scenario, 'before', 'after', 'ratio'], rows }).join('\n'))
}
