import { z } from 'zod'

interface Input {
  readonly standard: number
  readonly unit: string
  readonly help: string
  readonly schema: z.ZodType<number>
}

const share = z.coerce.number().min(0).max(1)
const positive = z.coerce.number().positive()
const count = z.coerce.number().int()

/** Every input of a plan by its option: what it is without the option, and what it means. Prices are assumptions. */
export const INPUTS = {
  'spans-per-day': { standard: 1e9, unit: '', help: 'spans that are accepted on a day', schema: positive.max(1e15) },
  'peak-factor': {
    standard: 2,
    unit: '×',
    help: 'the busiest minutes over the mean',
    schema: z.coerce.number().min(1).max(100),
  },
  'spans-per-payload': {
    standard: 200,
    unit: '',
    help: 'spans of a request',
    schema: z.coerce.number().min(1).max(100_000),
  },
  'bytes-per-span': {
    standard: 0,
    unit: 'B',
    help: 'a span in protobuf, before gzip; 0: as measured. Scales bytes, not CPU',
    schema: z.coerce.number().min(0).max(1e6),
  },
  'realistic-share': {
    standard: 1,
    unit: '',
    help: 'share of realistic spans; the others are uniform (bench/README.md)',
    schema: share,
  },
  'gzip-share': { standard: 0.5, unit: '', help: 'share of the bodies that are gzip', schema: share },
  'retention-days': { standard: 30, unit: 'days', help: 'RETENTION_DAYS', schema: z.coerce.number().min(1).max(3_650) },
  'backlog-minutes': {
    standard: 10,
    unit: 'min',
    help: 'how long ClickHouse may be unavailable at the peak before clients get 429',
    schema: z.coerce.number().min(0).max(10_000),
  },
  utilisation: {
    standard: 0.6,
    unit: '',
    help: 'share of each resource in use at the peak',
    schema: z.coerce.number().min(0.05).max(1),
  },
  'core-speed': {
    standard: 1,
    unit: '×',
    help: 'a core of yours over one of the measured machine',
    schema: positive.max(20),
  },
  zones: {
    standard: 3,
    unit: '',
    help: 'availability zones over which everything is spread',
    schema: count.min(1).max(10),
  },
  'redis-replicas': { standard: 1, unit: '', help: 'replicas of each Redis node', schema: count.min(0).max(5) },
  'redis-cores': {
    standard: 2,
    unit: 'cores',
    help: 'cores of a Redis node, which uses one for commands',
    schema: count.min(1).max(64),
  },
  'redis-memory': { standard: 32, unit: 'GB', help: 'maxmemory of a Redis node', schema: positive.max(4_096) },
  'partitions-per-node': {
    standard: 2,
    unit: '',
    help: 'partitions of a queue on a Redis node, to have some to move',
    schema: count.min(1).max(64),
  },
  'clickhouse-replicas': { standard: 2, unit: '', help: 'nodes of a shard', schema: count.min(1).max(5) },
  'clickhouse-cores': {
    standard: 16,
    unit: 'cores',
    help: 'cores of a ClickHouse node',
    schema: count.min(1).max(512),
  },
  'clickhouse-memory': { standard: 64, unit: 'GB', help: 'memory of a ClickHouse node', schema: positive.max(16_384) },
  'clickhouse-disk': { standard: 8_000, unit: 'GB', help: 'disk of a ClickHouse node', schema: positive.max(1e6) },
  network: { standard: 10, unit: 'Gbit/s', help: 'network of a node', schema: positive.max(1_000) },
  backups: {
    standard: 1,
    unit: '',
    help: 'copies of what ClickHouse stores in the bucket',
    schema: z.coerce.number().min(0).max(100),
  },
  'core-hour': {
    standard: 0.04,
    unit: '$',
    help: 'price of a core for an hour, with 2 GB of memory',
    schema: z.coerce.number().min(0),
  },
  'memory-gb-hour': { standard: 0.005, unit: '$', help: 'price of further memory', schema: z.coerce.number().min(0) },
  'disk-gb-month': { standard: 0.1, unit: '$', help: 'price of a disk', schema: z.coerce.number().min(0) },
  'object-gb-month': { standard: 0.023, unit: '$', help: 'price of the bucket', schema: z.coerce.number().min(0) },
  'cross-zone-gb': {
    standard: 0.02,
    unit: '$',
    help: 'price of a GB between zones, both directions together',
    schema: z.coerce.number().min(0),
  },
} as const satisfies Readonly<Record<string, Input>>

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
