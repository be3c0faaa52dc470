import { figureText } from '../report/figure-text.ts'
import { textTable } from '../report/table.ts'
import type { Resource } from './bottlenecks.ts'
import type { Costs } from './costs.ts'
import { INPUT_NAMES, INPUTS, type InputName, type Inputs } from './inputs.ts'
import type { Plan } from './make-plan.ts'
import type { PricedPlan } from './price-plan.ts'

/** A plan with its price and bottlenecks, as `--json` prints it. */
export interface Simulation {
  readonly inputs: Inputs
  readonly costs: Pick<Costs, 'source' | 'doubts'>
  /** Number of equal installations that share the load. */
  readonly installations: number
  /** Bounds that a single installation would exceed. */
  readonly because: readonly string[]
  /** Plan, price and bottlenecks are of one installation. */
  readonly plan: Plan
  readonly price: PricedPlan
  /** Resources of the plan, the scarcest first. */
  readonly bottlenecks: readonly Resource[]
}

/** Renders a plan for a terminal. */
export function renderPlan(simulation: Simulation): string {
  return [
    ...inputLines(simulation),
    '',
    ...fleetLines(simulation),
    '',
    ...settingLines(simulation),
    '',
    ...trafficLines(simulation),
    '',
    ...bottleneckLines(simulation),
    '',
    ...(isAvailable(simulation.inputs)
      ? []
      : ['An outage of one of these is an outage of all: --availability ha plans what may lose any of them.']),
    `Costs: ${simulation.costs.source}.`,
    ...simulation.costs.doubts.map(doubt => `Do not rely on them: ${doubt}.`),
    'Prices are assumptions of a list price, not quotes: each is an option (--help).',
    'Not in the plan: reads, logs, metrics, replays, source maps, the Redis of the directory, and load balancers.',
  ].join('\n')
}

const isAvailable = (inputs: Inputs) =>
  inputs['least-processes'] > 1 && inputs['redis-replicas'] > 0 && inputs['clickhouse-replicas'] > 1

function inputLines({ inputs, installations, because, plan }: Simulation): string[] {
  const changed = (name: InputName) => inputs[name] !== INPUTS[name].standard || name === 'spans-per-day'
  const ratesText = (number: number) =>
    `${rateText(plan.meanRate * number)} as a mean of the day, ${rateText(plan.peakRate * number)} at the peak`
  return [
    `${ratesText(installations)}.`,
    `Set: ${INPUT_NAMES.filter(changed)
      .map(name => `--${name} ${inputs[name]}`)
      .join(' ')}`,
    ...(installations === 1
      ? []
      : [
          '',
          `This needs ${installations} installations. One would need ${because.join('; ')}.`,
          `Each has workspaces of its own, with ${ratesText(1)}: the largest workspace must fit into one.`,
          'All that follows is of one installation, unless it says otherwise.',
        ]),
  ]
}

function fleetLines({ installations, plan, price }: Simulation): string[] {
  const rows = price.lines.map(({ name, count, cores, memory, disk, dollarsPerMonth }) => [
    name,
    count.toLocaleString('en'),
    String(cores),
    `${figureText(memory)} GB`,
    disk === 0 ? '' : `${figureText(disk)} GB`,
    dollarText(dollarsPerMonth),
  ])
  const amounts = price.amounts.map(({ name, amount, dollarsPerMonth }) => [
    name,
    amount,
    '',
    '',
    '',
    dollarText(dollarsPerMonth),
  ])
  return [
    ...textTable({ head: ['', 'number', 'cores', 'memory', 'disk', '$ a month'], rows: [...rows, ...amounts] }),
    `  ${dollarText(price.dollarsPerMonth)} a month, ${dollarText(price.dollarsPerBillionSpans)} for a billion spans.`,
    ...(installations === 1
      ? []
      : [`  All ${installations} installations: ${dollarText(installations * price.dollarsPerMonth)} a month.`]),
    ...plan.enlarged.map(text => `  Larger than set: ${text}.`),
    ...plan.exceeded.map(text => `  More than one installation can have, however the load is divided: ${text}.`),
  ]
}

function settingLines({ plan: { redis, clickhouse } }: Simulation): string[] {
  const inserts = Math.ceil(clickhouse.insertsPerSecond)
  return [
    `Redis: ${redis.nodes} primaries with ${redis.partitions} partitions of a queue. The backlog needs ${figureText(redis.memoryNeeded)} GB of maxmemory in all.`,
    `ClickHouse: ${clickhouse.shards} shards. A batch has ${Math.round(clickhouse.rowsPerInsert).toLocaleString('en')} rows, ` +
      `${Math.round(clickhouse.rowsPerInsert / clickhouse.shards).toLocaleString('en')} for a shard. Data of one copy: ${figureText(clickhouse.stored)} GB.`,
    `CLICKHOUSE_INSERTS_PER_SECOND=${inserts}, whose windows need ${figureText(clickhouse.windowMemory)} GB of memory in each node.`,
  ]
}

function trafficLines({ plan }: Simulation): string[] {
  const rows = Object.entries(plan.traffic).map(([hop, bytes]) => [
    hop,
    `${figureText((bytes * 8) / 1e9)} Gbit/s`,
    `${figureText(bytes / plan.peakRate)} B a span`,
  ])
  return textTable({ head: ['network at the peak', '', ''], rows })
}

function bottleneckLines({ plan, bottlenecks }: Simulation): string[] {
  const [first, next] = bottlenecks
  const line = ({ name, rate, remedy }: Resource) =>
    `${name}, at ${figureText(rate / plan.peakRate)} times this load (${rateText(rate)}): ${remedy}`
  return [`First bottleneck of this plan: ${first && line(first)}.`, `The next: ${next && line(next)}.`]
}

const rateText = (rate: number) => `${figureText(rate)} spans/s`

/** Returns dollars with cents below 100. */
function dollarText(dollars: number): string {
  const digits = dollars < 100 ? 2 : 0
  return `$${dollars.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`
}
