import { existsSync } from 'node:fs'
import { access, constants, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { errorMessage } from '../shared/runtime/errors.ts'
import { GOALS } from './goals.ts'
import { type Calibration, calibrate, readSteal, voidReasons } from './machine/calibrate.ts'
import { untilDiskQuiet } from './machine/disk.ts'
import { machineFacts } from './machine/machine-facts.ts'
import { type BenchRun, type FailedScenario, renderText, reportsOf } from './report/report.ts'
import { HEADLINE, mergeReports, readPage, renderPage } from './report/results-page.ts'
import { goalsOf, type MachineDuring, type SummarizedScenario, summarizeScenario } from './report/summary.ts'
import { makeDataDir, type RunLength, runScenario, type ScenarioOutcome } from './support/run-scenario.ts'
import type { Scenario } from './support/scenario.ts'

const USAGE = `npm run bench -- [NAME …] [--quick] [--full] [--json FILE] [--list]

  NAME …                 run only these scenarios (default: those that judge the main goals, in three quarters of an hour)
  --full                 run all scenarios, and loads of twenty minutes, which takes two to four hours
  --quick                run fewer and shorter rounds, to check that everything works; do not quote the figures
  --json FILE            write the figures to FILE
  --write                write the figures of these scenarios to bench/RESULTS.md, whose others stay as they are
  --list                 list the scenarios and their questions

A run without names writes bench/RESULTS.md in any case. BENCH_DIR is the directory of the servers' data
during the run. OTELCOL_BIN is the path of an OpenTelemetry Collector to compare with (bench/README.md). BENCH_BASELINE is
the directory of another checkout to compare with. BENCH_SUSTAINED_MINUTES is the length of a load of \`sustained\`.`

/**
 * Names of the scenarios in the order of the report. Each is a file of bench/scenarios that exports `scenario` (`moduleOf`).
 * The first ones judge the goals of ingest and reads on two cores. The very first one heads bench/RESULTS.md.
 */
const USUAL = [
  HEADLINE,
  'decode',
  'ingest',
  'pipeline',
  'part-load',
  'freshness',
  'fairness',
  'trace-read',
  'replay',
  'memory',
]
const SCENARIOS = [...USUAL, 'alerts', 'services', 'grpc', 'stored-reads', 'scale']

const RESULTS = new URL('RESULTS.md', import.meta.url)

const OPTIONS = {
  quick: { type: 'boolean', default: false },
  json: { type: 'string' },
  full: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false },
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

/** Returns the file of a scenario: `scenarios/<name>.ts`, or `scenarios/<name>/<name>.ts` beside its parts. */
function moduleOf(name: string): URL {
  const besideParts = new URL(`scenarios/${name}/${name}.ts`, import.meta.url)
  return existsSync(besideParts) ? besideParts : new URL(`scenarios/${name}.ts`, import.meta.url)
}

async function questionOf(name: string): Promise<string> {
  const { scenario } = (await import(moduleOf(name).href)) as { scenario: Scenario }
  return scenario.question
}

/** Runs the scenarios. Calls `save` after each, so that what was measured is kept if the run is interrupted. */
async function run(
  names: readonly string[],
  length: RunLength,
  save: (run: BenchRun) => Promise<void>,
): Promise<BenchRun> {
  const startedAt = performance.now()
  const dir = await makeDataDir()
  try {
    const facts = await machineFacts(dir)
    const scenarios: SummarizedScenario[] = []
    const failed: FailedScenario[] = []
    const runSoFar = (): BenchRun => {
      const seconds = (performance.now() - startedAt) / 1_000
      return { version: 1, quick: length.quick, seconds, facts, scenarios, failed, goals: GOALS }
    }
    // The figures of a quick run are not for quoting, so it needs no calibration.
    let before = length.quick ? undefined : await calibrate(dir)
    for (const name of names) {
      const steal = readSteal()
      const measured = await measure(name, length, facts)
      const machine = before && (await machineSince(before, steal, dir))
      before = machine?.after
      const result = 'reason' in measured ? measured : summarize(measured, machine)
      if ('reason' in result) failed.push(result)
      else scenarios.push(result)
      await save(runSoFar())
    }
    return runSoFar()
  } finally {
    await rm(dir, { recursive: true })
  }
}

/** Calibrates after a scenario. Its data were deleted, so the disk may be busy for some seconds. */
async function machineSince(
  before: Calibration,
  stealBefore: ReturnType<typeof readSteal>,
  dir: string,
): Promise<MachineDuring> {
  const { total, steal } = readSteal()
  const passed = total - stealBefore.total
  const stealShare = passed === 0 ? 0 : (steal - stealBefore.steal) / passed
  await untilDiskQuiet(dir)
  const after = await calibrate(dir)
  return { before, after, stealShare, void: voidReasons(before, after, stealShare) }
}

/** Result of a scenario with the facts that its summary needs. */
interface MeasuredScenario {
  readonly name: string
  readonly question: string
  readonly seconds: number
  readonly outcome: ScenarioOutcome
}

const progressOf = (name: string, startedAt: number) => (text: string) => {
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  process.stderr.write(`${name.padEnd(10)} ${seconds.padStart(4)} s  ${text}\n`)
}

/** Runs one scenario and adds its facts to `facts`. Rejects only if the run was interrupted. */
async function measure(
  name: string,
  length: RunLength,
  facts: Record<string, string>,
): Promise<MeasuredScenario | FailedScenario> {
  const startedAt = performance.now()
  const progress = progressOf(name, startedAt)
  try {
    const question = await questionOf(name)
    progress(question)
    const outcome = await runScenario(moduleOf(name), length, progress, interruption.signal)
    Object.assign(facts, outcome.facts)
    return { name, question, outcome, seconds: (performance.now() - startedAt) / 1_000 }
  } catch (error) {
    if (interruption.signal.aborted) throw error
    progress(`failed: ${errorMessage(error)}`)
    return failure(name, error)
  }
}

function summarize(
  { name, question, seconds, outcome }: MeasuredScenario,
  machine: MachineDuring | undefined,
): SummarizedScenario | FailedScenario {
  const progress = (text: string) => process.stderr.write(`${name.padEnd(10)} ${text}\n`)
  try {
    const summarized = summarizeScenario({ name, question, seconds, ...(machine && { machine }) }, outcome)
    const goals = goalsOf([summarized])
    const missed = goals.filter(goal => !goal.met)
    progress(`done: ${goals.length - missed.length} goals met, ${missed.length} missed`)
    for (const reason of machine?.void ?? []) progress(`VOID: ${reason}`)
    return summarized
  } catch (error) {
    progress(`failed: ${errorMessage(error)}`)
    return failure(name, error)
  }
}

/** Only the first line of an error. The others are a stack. */
function failure(name: string, error: unknown): FailedScenario {
  return { name, reason: errorMessage(error).split('\n', 1)[0] ?? '' }
}

function parseOptions(args: readonly string[]) {
  const { values, positionals } = parseStrictly(args)
  const unknown = positionals.filter(name => !SCENARIOS.includes(name))
  if (unknown.length > 0)
    throw new UsageError(`unknown scenario: ${unknown.join(', ')} (choose from ${SCENARIOS.join(', ')})`)
  if (values.write && values.quick) throw new UsageError('--write: figures of a quick run are not for quoting')
  return { ...values, names: [...new Set(positionals)] }
}

function parseStrictly(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** Checks the directory of a file before a long run. */
async function assertWritable(file: string): Promise<void> {
  await access(dirname(resolve(file)), constants.W_OK).catch((error: Error) => {
    throw new UsageError(`--json ${file}: the file cannot be written (${error.message})`)
  })
}

/** Writes the scenarios of a run to bench/RESULTS.md, in place of earlier figures of them. */
async function writeResults(done: BenchRun): Promise<void> {
  const kept = existsSync(RESULTS) ? readPage(await readFile(RESULTS, 'utf8')) : []
  await writeFile(RESULTS, renderPage(mergeReports(SCENARIOS, kept, reportsOf(done))))
}

function chooseScenarios({ names, full }: { names: readonly string[]; full: boolean }): readonly string[] {
  if (names.length > 0) return names
  return full ? SCENARIOS : USUAL
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
  if (options.json !== undefined) await assertWritable(options.json)
  const isWritten = options.write || (options.names.length === 0 && !options.quick)
  const save = async (done: BenchRun) => {
    if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(done, undefined, 2)}\n`)
  }
  const done = await run(chooseScenarios(options), options, save)

  console.log(renderText(done))
  // A run with failures is written too: a bad run that is left out makes the others look better than they are.
  if (isWritten) {
    await writeResults(done)
    console.log('Written: bench/RESULTS.md.')
  }
  return done.failed.length > 0 || done.scenarios.some(({ failures }) => failures.length > 0) ? 1 : 0
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
