import { readFile, rm, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { type BenchRun, renderComparison, renderMarkdown, renderText } from './report.ts'
import { machineFacts } from './support/machine.ts'
import { makeDataDir, runScenario } from './support/run-scenario.ts'
import type { Scenario } from './support/scenario.ts'
import { countGoals, type SummarizedScenario, summarizeScenario } from './support/summary.ts'

const USAGE = `npm run bench -- [NAME …] [--quick] [--json FILE] [--compare FILE] [--list]

  NAME …          run only these scenarios; without any, all of them
  --quick         fewer and shorter rounds: to see that it works, not to quote
  --json FILE     write the figures, for --compare of a later run
  --compare FILE  show what has changed since the run that wrote FILE
  --list          name the scenarios and their questions

A full run of all scenarios writes bench/RESULTS.md. BENCH_DIR says where the servers keep their data meanwhile.`

/** In the order of the report. Each is a file of this folder that exports `scenario`. */
const SCENARIOS = ['decode', 'decode-json', 'decode-logs', 'decode-metrics', 'ingest', 'pipeline', 'trace-read']

const RESULTS = new URL('RESULTS.md', import.meta.url)

const moduleOf = (name: string) => new URL(`${name}.ts`, import.meta.url)

async function questionOf(name: string): Promise<string> {
  const { scenario } = (await import(moduleOf(name).href)) as { scenario: Scenario }
  return scenario.question
}

async function run(names: readonly string[], quick: boolean): Promise<BenchRun & { failed: readonly string[] }> {
  const dir = await makeDataDir()
  const facts = await machineFacts(dir).finally(() => rm(dir, { recursive: true }))
  const scenarios: SummarizedScenario[] = []
  const failed: string[] = []
  for (const name of names) {
    const startedAt = performance.now()
    const progress = (text: string) => {
      const seconds = Math.round((performance.now() - startedAt) / 1_000)
      process.stderr.write(`${name.padEnd(10)} ${String(seconds).padStart(4)} s  ${text}\n`)
    }
    try {
      const question = await questionOf(name)
      progress(question)
      const result = await runScenario(moduleOf(name), quick, progress, interruption.signal)
      Object.assign(facts, result.facts)
      scenarios.push(summarizeScenario({ name, question }, result, (performance.now() - startedAt) / 1_000))
    } catch (error) {
      if (interruption.signal.aborted) throw error
      progress(`failed: ${error instanceof Error ? error.message : error}`)
      failed.push(name)
    }
  }
  return { version: 1, quick, facts, scenarios, failed }
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    compare: { type: 'string' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

// The scenario's process is told, ends what it has started, and is waited for.
const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interruption.abort())

async function main(): Promise<number> {
  const unknown = positionals.filter(name => !SCENARIOS.includes(name))
  if (options.help || unknown.length > 0) {
    if (unknown.length > 0)
      console.error(`no such scenario: ${unknown.join(', ')} (there are ${SCENARIOS.join(', ')})\n`)
    console.log(USAGE)
    return options.help ? 0 : 2
  }
  if (options.list) {
    for (const name of SCENARIOS) console.log(`${name.padEnd(12)} ${await questionOf(name)}`)
    return 0
  }
  const before = options.compare && (JSON.parse(await readFile(options.compare, 'utf8')) as BenchRun)
  const { failed, ...done } = await run(positionals.length > 0 ? positionals : SCENARIOS, options.quick)

  console.log(renderText(done))
  if (before) console.log(`\nAgainst ${options.compare}:\n\n${renderComparison(done, before)}`)
  if (options.json) await writeFile(options.json, `${JSON.stringify(done, undefined, 2)}\n`)
  const isWhole = positionals.length === 0 && !options.quick && failed.length === 0
  if (isWhole) await writeFile(RESULTS, renderMarkdown(done))
  const { met, missed } = countGoals(done.scenarios)
  console.log(`\n${met} goals met, ${missed} missed${failed.length > 0 ? `; failed: ${failed.join(', ')}` : ''}.`)
  if (isWhole) console.log('Written to bench/RESULTS.md.')
  return failed.length > 0 ? 1 : 0
}

process.exitCode = await main().catch(error => {
  if (!interruption.signal.aborted) console.error(error)
  return interruption.signal.aborted ? 130 : 1
})
