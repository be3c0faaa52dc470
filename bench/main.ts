import { access, constants, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { type EarlierRun, readRun, renderComparison } from './report/compare-runs.ts'
import { machineFacts } from './report/machine.ts'
import { type BenchRun, type FailedScenario, renderMarkdown, renderText } from './report/report.ts'
import { goalsOf, type SummarizedScenario, summarizeScenario } from './report/summary.ts'
import { throughputCharts } from './report/throughput-charts.ts'
import { makeDataDir, runScenario } from './support/run-scenario.ts'
import type { Scenario } from './support/scenario.ts'

const USAGE = `npm run bench -- [NAME …] [--quick] [--json FILE] [--compare FILE] [--list]

  NAME …          run only these scenarios (default: all)
  --quick         run fewer and shorter rounds, to check that everything works; do not quote the figures
  --json FILE     write the figures to FILE, for --compare of a later run
  --compare FILE  show the changes since the run that wrote FILE
  --list          list the scenarios and their questions

A full run of all scenarios writes bench/RESULTS.md and its charts. BENCH_DIR is the directory of the servers' data
during the run. OTELCOL_BIN is the path of an OpenTelemetry Collector to compare with.`

/** Names of the scenarios in the order of the report. Each is a file of bench/scenarios that exports `scenario`. */
const SCENARIOS = [
  'decode',
  'ingest',
  'auth',
  'audit',
  'pipeline',
  'freshness',
  'fairness',
  'growth',
  'trace-read',
  'replay',
  'source-maps',
  'memory',
  'cold-start',
]

const OPTIONS = {
  quick: { type: 'boolean', default: false },
  json: { type: 'string' },
  compare: { type: 'string' },
  list: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const satisfies ParseArgsConfig['options']

/** Reports wrong arguments before the run starts. */
class UsageError extends Error {
  override readonly name = 'UsageError'
}

// An interruption lets the scenario's process end everything it has started.
const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interruption.abort())

const moduleOf = (name: string) => new URL(`scenarios/${name}.ts`, import.meta.url)

async function questionOf(name: string): Promise<string> {
  const { scenario } = (await import(moduleOf(name).href)) as { scenario: Scenario }
  return scenario.question
}

async function run(names: readonly string[], quick: boolean): Promise<BenchRun> {
  const startedAt = performance.now()
  const dir = await makeDataDir()
  const facts = await machineFacts(dir).finally(() => rm(dir, { recursive: true }))
  const scenarios: SummarizedScenario[] = []
  const failed: FailedScenario[] = []
  for (const name of names) {
    const result = await runOne(name, quick, facts)
    if ('reason' in result) failed.push(result)
    else scenarios.push(result)
  }
  return { version: 1, quick, seconds: (performance.now() - startedAt) / 1_000, facts, scenarios, failed }
}

/** Runs one scenario and adds its facts to `facts`. Rejects only if the run was interrupted. */
async function runOne(
  name: string,
  quick: boolean,
  facts: Record<string, string>,
): Promise<SummarizedScenario | FailedScenario> {
  const startedAt = performance.now()
  const seconds = () => (performance.now() - startedAt) / 1_000
  const progress = (text: string) => {
    process.stderr.write(`${name.padEnd(10)} ${seconds().toFixed(0).padStart(4)} s  ${text}\n`)
  }
  try {
    const question = await questionOf(name)
    progress(question)
    const result = await runScenario(moduleOf(name), quick, progress, interruption.signal)
    Object.assign(facts, result.facts)
    const summarized = summarizeScenario({ name, question }, result, seconds())
    const goals = goalsOf([summarized])
    const missed = goals.filter(goal => !goal.met)
    progress(`done: ${goals.length - missed.length} goals met, ${missed.length} missed`)
    return summarized
  } catch (error) {
    if (interruption.signal.aborted) throw error
    const reason = error instanceof Error ? error.message : String(error)
    progress(`failed: ${reason}`)
    // Only the first line. The others are a stack.
    return { name, reason: reason.split('\n', 1)[0] ?? '' }
  }
}

function parseOptions(args: readonly string[]) {
  const { values, positionals } = parseStrictly(args)
  const unknown = positionals.filter(name => !SCENARIOS.includes(name))
  if (unknown.length > 0)
    throw new UsageError(`unknown scenario: ${unknown.join(', ')} (choose from ${SCENARIOS.join(', ')})`)
  return { ...values, names: [...new Set(positionals)] }
}

function parseStrictly(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function readEarlierRun(file: string): Promise<EarlierRun> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new UsageError(`--compare ${file}: the file cannot be read (${error.message})`)
  })
  const result = readRun(text)
  if (!result.ok) throw new UsageError(`--compare ${file}: ${result.reason}`)
  return result.run
}

/** Checks the directory of a file before a run of a quarter of an hour. */
async function assertWritable(file: string): Promise<void> {
  await access(dirname(resolve(file)), constants.W_OK).catch((error: Error) => {
    throw new UsageError(`--json ${file}: the file cannot be written (${error.message})`)
  })
}

async function writeResults(done: BenchRun): Promise<string[]> {
  // Loaded only here, because loading it takes longer than listing the scenarios.
  const { drawChart } = await import('./report/chart.ts')
  const charts = throughputCharts(done.scenarios).map(chart => ({ file: chart.file, text: drawChart(chart) }))
  const files = [{ file: 'RESULTS.md', text: renderMarkdown(done) }, ...charts]
  for (const { file, text } of files) await writeFile(new URL(file, import.meta.url), text)
  return files.map(({ file }) => `bench/${file}`)
}

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2))
  if (options.help) {
    console.log(USAGE)
    return 0
  }
  if (options.list) {
    for (const name of SCENARIOS) console.log(`${name.padEnd(12)} ${await questionOf(name)}`)
    return 0
  }
  const before = options.compare === undefined ? undefined : await readEarlierRun(options.compare)
  if (options.json !== undefined) await assertWritable(options.json)
  const isWhole = options.names.length === 0 && !options.quick
  const done = await run(options.names.length > 0 ? options.names : SCENARIOS, options.quick)

  if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(done, undefined, 2)}\n`)
  console.log(renderText(done))
  if (before) console.log(`\ncompared with ${options.compare}:\n\n${renderComparison(done, before)}`)
  if (done.failed.length > 0) {
    if (isWhole) console.log('bench/RESULTS.md is unchanged, because a scenario failed.')
    return 1
  }
  if (isWhole) console.log(`Written: ${(await writeResults(done)).join(', ')}.`)
  return 0
}

process.exitCode = await main().catch(error => {
  if (interruption.signal.aborted) return 130
  if (!(error instanceof UsageError)) {
    console.error(error)
    return 1
  }
  console.error(`${error.message}\n\n${USAGE}`)
  return 2
})
