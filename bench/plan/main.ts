import { readFile } from 'node:fs/promises'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { bottlenecksOf } from './bottlenecks.ts'
import { fitModel } from './cost-model.ts'
import { type Costs, readCosts } from './costs.ts'
import { divideLoad } from './divide-load.ts'
import { CHOICES, INPUT_NAMES, INPUTS, type Inputs, parseInputs } from './inputs.ts'
import { pricePlan } from './price-plan.ts'
import { renderPlan, type Simulation } from './render-plan.ts'

const COSTS = new URL('costs.json', import.meta.url)

const OPTIONS: ParseArgsConfig['options'] = {
  ...Object.fromEntries([...Object.keys(CHOICES), ...INPUT_NAMES].map(name => [name, { type: 'string' as const }])),
  costs: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
}

const USAGE = `npm run simulate -- [options]

Plans processes, partitions, nodes, network, disks and money for a load, from the measured costs of a span.

${Object.entries(CHOICES)
  .map(([name, { standard, help }]) => `  ${`--${name} NAME`.padEnd(26)} ${help} (default: ${standard})`)
  .join('\n')}
${INPUT_NAMES.map(name => {
  const { standard, unit, help } = INPUTS[name]
  return `  ${`--${name} N`.padEnd(26)} ${help} (default: ${standard}${unit && ` ${unit}`})`
}).join('\n')}
  --costs FILE               costs that "npm run bench -- scale --json FILE" has written (default: bench/plan/costs.json)
  --json                     print the plan as JSON

Example: npm run simulate -- --spans-per-day 1e10 --availability ha --retention-days 14`

/** Plans a load with these costs: one installation, or several that have the same part of it. */
function simulate(costs: Costs, inputs: Inputs): Simulation {
  const { installations, because, share, plan } = divideLoad(fitModel(costs.points), inputs)
  return {
    inputs,
    costs: { source: costs.source, doubts: costs.doubts },
    installations,
    because,
    plan,
    price: pricePlan(plan, share),
    bottlenecks: bottlenecksOf(plan, share),
  }
}

/** Reports wrong arguments. */
class UsageError extends Error {
  override readonly name = 'UsageError'
}

function parseOptions(args: readonly string[]): Readonly<Record<string, unknown>> {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2))
  if (options.help) return console.log(USAGE)
  const parsed = parseInputs(options)
  if (!parsed.ok) throw new UsageError(parsed.reason)
  const file = options.costs === undefined ? COSTS : String(options.costs)
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new UsageError(`--costs: the file cannot be read (${error.message})`)
  })
  const read = readCosts(text)
  if (!read.ok) throw new UsageError(`--costs: the file cannot be used: ${read.reason}`)
  const simulation = simulate(read.costs, parsed.inputs)
  console.log(options.json ? JSON.stringify(simulation, undefined, 2) : renderPlan(simulation))
}

await main().catch((error: Error) => {
  console.error(error instanceof UsageError ? `${error.message}\n\n${USAGE}` : error)
  process.exitCode = error instanceof UsageError ? 2 : 1
})
