import { z } from 'zod'
import { ruleOf } from '../../schemas/rule-of.ts'
import { errorMessage } from './errors.ts'
import { faultOfRedisAddress, readRedisAddress } from './redis/redis-address.ts'
import { parseRedisTarget, type RedisTarget } from './redis/redis-group.ts'
import { type Environment, readSecretFiles, SECRET_SETTINGS } from './secret-files.ts'

/** Exit code of a process whose arguments or environment are invalid, as of commands (`cli/exit-codes.ts`). */
export const EXIT_USAGE = 2

/** A setting that cannot be used. The message is one sentence, and all that an operator needs. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/**
 * Validates an environment against a schema and freezes the result. An empty variable counts as absent, so that `NAME=` in
 * an env file means the default. Secrets may be given as files (`readSecretFiles`). Throws a ConfigError that names every fault.
 */
export function parseConfig<S extends z.ZodObject>(schema: S, env: Environment): Readonly<z.infer<S>> {
  const secrets = SECRET_SETTINGS.filter(name => name in schema.shape)
  const { env: read, faults: fileFaults } = readSecretFiles(env, secrets)
  const present = Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined && value !== ''))
  const result = schema.safeParse(present, { error: ruleOf })
  const issues = result.error?.issues ?? []
  // A setting whose file cannot be used is not reported a second time as absent.
  const isNew = ({ path: [name] }: z.core.$ZodIssue) =>
    !fileFaults.some(fault => fault.startsWith(`${String(name)} `) || fault.startsWith(`${String(name)}_FILE `))
  const faults = [...fileFaults, ...issues.filter(isNew).map(issue => faultOf(issue, present))]
  if (!result.success || faults.length > 0) throw new ConfigError(`the environment is invalid: ${faults.join('; ')}`)
  return Object.freeze(result.data)
}

/** A rule that continues the name of a setting. Others are a sentence of their own. */
const CONTINUES = /^(?:is|must|needs|names|has) /
/** Characters of a value that are shown. */
const SHOWN_MAX = 40

function faultOf(issue: z.core.$ZodIssue, env: Environment): string {
  const name = issue.path.join('.')
  const value = env[name]
  const shown = value !== undefined && isShown(issue) ? `, and is ${JSON.stringify(value.slice(0, SHOWN_MAX))}` : ''
  return `${name}${CONTINUES.test(issue.message) ? '' : ':'} ${issue.message}${shown}`
}

/** Only the value of a number or of a choice is shown: no secret is either. */
function isShown(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_type') return issue.expected === 'number' || issue.expected === 'int'
  if (issue.code === 'too_small' || issue.code === 'too_big') return issue.origin === 'number' || issue.origin === 'int'
  return issue.code === 'invalid_value'
}

/** Accepts an address of HTTP. */
export const httpUrl = () =>
  z.url({ protocol: /^https?$/, error: 'must be an address that begins with http:// or https://' })
/** Accepts a TCP port. */
export const port = (fallback: number) => z.coerce.number().int().min(1).max(65_535).default(fallback)
/** Accepts a positive integer. */
export const count = (fallback: number) => z.coerce.number().int().min(1).default(fallback)

/** Settings of every process. */
export const processSettings = {
  BIND_HOST: z.string().default('127.0.0.1'),
  /**
   * Address of the admin port. Its metrics and reasons need no credential, so it does not follow BIND_HOST: probes and
   * scrapers of other machines need 0.0.0.0 and a network that clients cannot reach.
   */
  ADMIN_BIND_HOST: z.string().default('127.0.0.1'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace']).default('info'),
}

/** The one address of edge and API, as clients reach it: /openapi.json, the console and alerts name it. It is the same for all. */
export function publicUrl() {
  return httpUrl()
    .refine(text => !/[?#@]/.test(text), 'must have no query, fragment, user or password')
    .transform(text => text.replace(/\/+$/, ''))
    .optional()
}

/** Settings of the processes that serve HTTP. */
export const httpSettings = {
  /** The most open connections. Further ones are closed at once. One that sends nothing is closed after 10 s. */
  MAX_CONNECTIONS: z.coerce.number().int().min(1).max(1_000_000).default(20_000),
  PUBLIC_URL: publicUrl(),
  /**
   * How long a process that stops still accepts requests: it is not ready, and asks its clients to open other connections. It is
   * part of SHUTDOWN_DEADLINE_MS. Load balancers send requests for some seconds to a process that they will leave.
   */
  DRAIN_DELAY_MS: z.coerce.number().int().min(0).max(600_000).default(0),
}

/** Adds the fault of an address whose parameters contradict each other, or name a file that cannot be read. */
const checkFiles = (url: string, context: z.RefinementCtx): void => {
  const message = faultOfRedisAddress(url) ?? unreadableFile(() => readRedisAddress(url))
  if (message !== undefined) context.addIssue({ code: 'custom', message })
}

function unreadableFile(read: () => unknown): string | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    return errorMessage(error)
  }
}

/** Address of a Redis. `rediss:` is TLS, whose files are parameters of the address (`readRedisAddress`). */
export const redisUrl = z
  .url({ protocol: /^rediss?$/, error: 'must be an address that begins with redis:// or rediss://' })
  .superRefine(checkFiles)

/** Accepts an address of one of these kinds whose files can be read. `forms` names what is accepted. */
const redisTarget =
  (kinds: readonly RedisTarget['kind'][], forms: string) => (text: string, context: z.RefinementCtx) => {
    let target: RedisTarget | undefined
    const message = unreadableFile(() => {
      target = parseRedisTarget(text)
    })
    if (message !== undefined) context.addIssue({ code: 'custom', message })
    else if (target === undefined || !kinds.includes(target.kind)) context.addIssue({ code: 'custom', message: forms })
    else if (target.kind === 'server') checkFiles(text, context)
  }

/** Settings of the connections to Redis. */
export const redisSettings = {
  /** Redis of the queues: one server, `redis+sentinel://a:26379,b:26379/name`, or `redis+cluster://a:6379,b:6379`. */
  REDIS_URL: z
    .string()
    .superRefine(
      redisTarget(
        ['server', 'sentinel', 'cluster'],
        'must be redis://, redis+sentinel:// or redis+cluster://, or each with rediss',
      ),
    )
    .default('redis://127.0.0.1:4379'),
  /**
   * Redis of the directory (workspaces, users, surfaces, keys) and the releases. It has no default, because with the address
   * of REDIS_URL the queues and the releases can take each other's memory, and with another one the directory is elsewhere.
   */
  DIRECTORY_REDIS_URL: z
    .string({
      error: ({ input }) =>
        input === undefined
          ? 'is required: set the Redis of the directory and the releases, or the value of REDIS_URL if they share its memory'
          : undefined,
    })
    .superRefine(redisTarget(['server', 'sentinel'], 'must be redis:// or redis+sentinel://, or the same with rediss')),
}

/** What a confirmed write of Redis survives (docs/operate/durability.md#durability). */
const DURABILITIES = ['fsync', 'replicated', 'unchecked'] as const

/** Settings of the processes that write to Redis what they confirm. */
export const durabilitySettings = {
  /**
   * `fsync`: Redis must sync each write before it answers. `replicated`: replicas must have each write as well. `unchecked`:
   * the settings of Redis are not looked at, for services that forbid CONFIG.
   */
  REDIS_DURABILITY: z.enum(DURABILITIES).default('fsync'),
  /** With `replicated`: the number of replicas that must have a write before it is confirmed. */
  REDIS_MIN_REPLICAS: z.coerce.number().int().min(1).max(16).default(1),
}

/** Values of {@link durabilitySettings}. */
export type DurabilitySettings = Readonly<z.infer<z.ZodObject<typeof durabilitySettings>>>

/** Returns the number of replicas that must have a write before it is confirmed, or 0 if none must. */
export function replicasToConfirm({ REDIS_DURABILITY, REDIS_MIN_REPLICAS }: DurabilitySettings): number {
  return REDIS_DURABILITY === 'replicated' ? REDIS_MIN_REPLICAS : 0
}

/**
 * Address of ClickHouse, which may have user and password. Settings of queries belong into the profile of the user, because reads,
 * inserts and migrations need different ones.
 */
export const clickhouseAddress = httpUrl().refine(
  url => !url.includes('?'),
  'must have no query: set what it sets in the profile of the ClickHouse user',
)

/** Most shards, and most replicas of one. A cursor, which has at most 512 characters, names a block of each shard. */
export const CLICKHOUSE_SHARDS_MAX = 24

/**
 * Addresses of ClickHouse: one, or those of a cluster as ClickHouse's own table function `remote` takes them. Commas separate
 * shards, and pipes the replicas of a shard.
 */
const clickhouseUrl = z.string().superRefine((text, context) => {
  const shards = clickhouseAddresses(text)
  if (Math.max(shards.length, ...shards.map(({ length }) => length)) > CLICKHOUSE_SHARDS_MAX) {
    context.addIssue({ code: 'custom', message: `must have at most ${CLICKHOUSE_SHARDS_MAX} shards and replicas` })
  }
  for (const address of shards.flat()) {
    for (const { message } of clickhouseAddress.safeParse(address).error?.issues ?? []) {
      context.addIssue({ code: 'custom', message })
    }
  }
  if (new Set(shards.flat()).size < shards.flat().length) {
    context.addIssue({ code: 'custom', message: 'must name each address once' })
  }
})

/** Returns the addresses of each shard of `CLICKHOUSE_URL`. */
export function clickhouseAddresses(url: string): string[][] {
  return url.split(',').map(shard => shard.split('|').map(address => address.trim()))
}

/** Settings of the connection to ClickHouse. */
export const clickhouseSettings = {
  CLICKHOUSE_URL: clickhouseUrl.default('http://127.0.0.1:4123'),
  CLICKHOUSE_USER: z.string().default('default'),
  CLICKHOUSE_PASSWORD: z.string().default(''),
  CLICKHOUSE_DATABASE: z
    .string()
    .regex(/^[a-z_][a-z0-9_]*$/, 'must have only a to z, 0 to 9 and _, and not begin with a digit')
    .default('penstock'),
  /**
   * Name of the cluster in the configuration of the servers (`remote_servers`), whose addresses CLICKHOUSE_URL has. All processes
   * have the same value, and the same addresses in the same order.
   */
  CLICKHOUSE_CLUSTER: z
    .string()
    .regex(
      /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/,
      'must have at most 64 letters, digits, _ and -, and begin with a letter or _',
    )
    .optional(),
  /** Whether the tables of a cluster are replicated. `auto`: if a shard has several addresses. */
  CLICKHOUSE_REPLICATED: z.enum(['auto', 'on']).default('auto'),
}

/** Settings of the processes that know how long data is kept. */
export const retentionSettings = {
  /**
   * How many days rows are kept unless their workspace has a shorter retention. All processes have the value with which the
   * migrations ran.
   */
  RETENTION_DAYS: count(30),
}

/** Settings of tables of ClickHouse, which migrations apply. */
export const migrationSettings = {
  /**
   * Inserts per second of one queue, as a mean over a day, that are recognized for a day when they are repeated. Up to four
   * workers together insert four times a second in the express lane and twice in the bulk lane, and each further worker less
   * often (BATCH_MAX_AGE_MS). The memory that this takes of ClickHouse is in docs/performance.md.
   */
  CLICKHOUSE_INSERTS_PER_SECOND: z.coerce.number().min(0.1).max(100).default(4),
  /** `on`: an insert is on disk when it is confirmed. `off`: it is written, and a power loss of the host may lose it. */
  CLICKHOUSE_FSYNC: z.enum(['on', 'off']).default('on'),
}

/** Returns the settings of tables as `migrate` takes them. */
export function tableSettingsOf(config: Readonly<z.infer<z.ZodObject<typeof migrationSettings>>>) {
  return { insertsPerSecond: config.CLICKHOUSE_INSERTS_PER_SECOND, fsync: config.CLICKHOUSE_FSYNC === 'on' }
}

/** Values of {@link clickhouseSettings}. */
export type ClickHouseSettings = Readonly<z.infer<z.ZodObject<typeof clickhouseSettings>>>

/** Settings of the connection to the object store. */
export const objectStoreSettings = {
  S3_ENDPOINT: httpUrl().optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_BUCKET: z.string().default('penstock'),
  AWS_ACCESS_KEY_ID: z.string().optional(),
  AWS_SECRET_ACCESS_KEY: z.string().optional(),
}

/** Settings of the backups of the directory. */
export const backupSettings = {
  /**
   * Key with which backups of the directory are encrypted, at least 32 bytes. Without it they are readable for everyone who
   * can read the bucket. A backup can only be restored with the key that it was made with.
   */
  DIRECTORY_BACKUP_KEY: z
    .string()
    .refine(key => Buffer.byteLength(key) >= 32, 'must have at least 32 bytes')
    .optional(),
}

/** Values of {@link objectStoreSettings}. */
export type ObjectStoreSettings = Readonly<z.infer<z.ZodObject<typeof objectStoreSettings>>>
