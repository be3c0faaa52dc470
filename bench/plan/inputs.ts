import { z } from 'zod'

/** Choices that set several inputs. An option of an input overrides them. */
export const CHOICES = {
  availability: {
    standard: 'single',
    help: 'single: one of each, an outage of one is one of all. ha: any of them may fail, in one of three zones',
    values: {
      single: { zones: 1, 'least-processes': 1, 'redis-replicas': 0, 'clickhouse-replicas': 1 },
      ha: { zones: 3, 'least-processes': 2, 'redis-replicas': 2, 'clickhouse-replicas': 3 },
    },
  },
  profile: {
    standard: 'collector',
    help: 'who sends. collector: payloads of 200 spans. browser: of 3',
    values: { collector: { 'spans-per-payload': 200 }, browser: { 'spans-per-payload': 3 } },
  },
} as const satisfies Record<string, Choice>

interface Choice {
  readonly standard: string
  readonly help: string
  readonly values: Readonly<Record<string, Readonly<Record<string, number>>>>
}

interface Input {
  readonly standard: number
  readonly unit: string
  readonly help: string
  readonly schema: z.ZodType<number>
}

const share = z.coerce.number().min(0).max(1)
const positive = z.coerce.number().positive()
const count = z.coerce.number().int()
const atLeast = (least: number) => z.coerce.number().min(least)

const input = (standard: number, unit: string, help: string, schema: z.ZodType<number>): Input => ({
  standard,
  unit,
  help,
  schema,
})

/** Every input of a plan by its option: what it is without the option, and what it means. Prices are assumptions. */
export const INPUTS = {
  'spans-per-day': input(1e9, '', 'spans that are accepted on a day', positive.max(1e15)),
  'peak-factor': input(2, '×', 'the busiest minutes over the mean', atLeast(1).max(100)),
  'spans-per-payload': input(200, '', 'spans of a request, see --profile', atLeast(1).max(100_000)),
  'bytes-per-span': input(
    0,
    'B',
    'a span in protobuf, before gzip; 0: as measured. Scales bytes, not CPU',
    atLeast(0).max(1e6),
  ),
  'realistic-share': input(1, '', 'share of realistic spans; the others are uniform (bench/README.md)', share),
  'gzip-share': input(0.5, '', 'share of the bodies that are gzip', share),
  'retention-days': input(30, 'days', 'RETENTION_DAYS', atLeast(1).max(3_650)),
  'backlog-minutes': input(
    10,
    'min',
    'how long ClickHouse may be unavailable at the peak before clients get 429',
    atLeast(0).max(10_000),
  ),
  utilisation: input(0.6, '', 'share of each resource in use at the peak', atLeast(0.05).max(1)),
  'core-speed': input(1, '×', 'a core of yours over one of the measured machine', positive.max(20)),
  zones: input(1, '', 'availability zones over which everything is spread, see --availability', count.min(1).max(10)),
  'least-processes': input(1, '', 'edges and workers at least, see --availability', count.min(1).max(100)),
  'redis-replicas': input(0, '', 'replicas of each Redis node, see --availability', count.min(0).max(5)),
  'redis-cores': input(
    0,
    'cores',
    'cores of a Redis node, which uses one for commands; 0: 0.5 to 2, as needed',
    atLeast(0).max(64),
  ),
  'redis-memory': input(0, 'GB', 'maxmemory of a Redis node; 0: 1 to 32, as needed', atLeast(0).max(4_096)),
  'partitions-per-node': input(
    2,
    '',
    'partitions of a queue on a Redis node, to have some to move',
    count.min(1).max(64),
  ),
  'clickhouse-replicas': input(1, '', 'nodes of a shard, see --availability', count.min(1).max(5)),
  'clickhouse-cores': input(0, 'cores', 'cores of a ClickHouse node; 0: 1 to 16, as needed', atLeast(0).max(512)),
  'clickhouse-memory': input(0, 'GB', 'memory of a ClickHouse node; 0: 4 for each core', atLeast(0).max(16_384)),
  'clickhouse-disk': input(8_000, 'GB', 'disk of a ClickHouse node', positive.max(1e6)),
  network: input(10, 'Gbit/s', 'network of a node', positive.max(1_000)),
  backups: input(1, '', 'copies of what ClickHouse stores in the bucket', atLeast(0).max(100)),
  'core-hour': input(0.04, '$', 'price of a core for an hour, with 2 GB of memory', atLeast(0)),
  'memory-gb-hour': input(0.005, '$', 'price of further memory', atLeast(0)),
  'disk-gb-month': input(0.1, '$', 'price of a disk', atLeast(0)),
  'object-gb-month': input(0.023, '$', 'price of the bucket', atLeast(0)),
  'cross-zone-gb': input(0.02, '$', 'price of a GB between zones, both directions together', atLeast(0)),
}

/** Name of an input. */
export type InputName = keyof typeof INPUTS
/** The inputs of a plan. */
export type Inputs = Readonly<Record<InputName, number>>

/** Inputs, or what is wrong with an option. */
type ParseInputsResult =
  | { readonly ok: true; readonly inputs: Inputs }
  | { readonly ok: false; readonly reason: string }

/** Names of all inputs, in the order of the help. */
export const INPUT_NAMES = Object.keys(INPUTS) as InputName[]

/** Returns the inputs of a plan without options. */
export const STANDARD_INPUTS = Object.fromEntries(INPUT_NAMES.map(name => [name, INPUTS[name].standard])) as Inputs

/** Parses the options that are set. The others have their defaults. */
export function parseInputs(options: Readonly<Record<string, unknown>>): ParseInputsResult {
  const inputs: Record<InputName, number> = { ...STANDARD_INPUTS }
  for (const [name, { standard, values }] of Object.entries<Choice>(CHOICES)) {
    const chosen = values[String(options[name] ?? standard)]
    if (chosen === undefined) {
      return { ok: false, reason: `--${name} ${options[name]}: must be ${Object.keys(values).join(' or ')}` }
    }
    Object.assign(inputs, chosen)
  }
  for (const name of INPUT_NAMES) {
    const text = options[name]
    if (text === undefined) continue
    const value = text === '' ? undefined : INPUTS[name].schema.safeParse(text)
    if (!value?.success) {
      const [issue] = value?.error.issues ?? []
      return { ok: false, reason: `--${name} ${text}: ${issue?.message ?? 'a number is missing'}` }
    }
    inputs[name] = value.data
  }
  return { ok: true, inputs }
}
