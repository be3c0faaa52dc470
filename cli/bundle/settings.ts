import { clickhouseAddresses } from '../../shared/runtime/config.ts'
import { SECRET_SETTINGS } from '../../shared/runtime/secret-files.ts'

/** Settings with a number, which is shown. */
export const NUMBERS = [
  ...['SHUTDOWN_DEADLINE_MS', 'MAX_CONNECTIONS', 'DRAIN_DELAY_MS', 'REDIS_MIN_REPLICAS', 'RETENTION_DAYS'],
  ...['CLICKHOUSE_INSERTS_PER_SECOND', 'INGEST_PORT', 'INGEST_ADMIN_PORT', 'INGEST_GRPC_PORT', 'QUEUE_PARTITIONS'],
  ...['QUEUE_MAX_COST', 'REDIS_MAX_MEMORY_SHARE', 'HELD_BODY_BYTES', 'COMMIT_TIMEOUT_MS', 'VERDICT_TIMEOUT_MS'],
  ...['VERDICT_MAX_WAITING', 'WORKERS_ADMIN_PORT', 'BATCH_MAX_ROWS', 'BATCH_MAX_BYTES', 'BATCH_MAX_AGE_MS'],
  ...[
    'DEAD_LETTER_MAX_BYTES_PER_DAY',
    'DEAD_LETTER_MAX_COUNT_PER_DAY',
    'SYMBOLICATION_HEAP_BYTES',
    'INSERT_TIMEOUT_MS',
  ],
  ...['JOB_LOCK_MS', 'JOB_STALLED_CHECK_MS', 'SWEEP_INTERVAL_MS', 'DIRECTORY_BACKUP_INTERVAL_S'],
  ...['DIRECTORY_BACKUP_KEEP', 'API_PORT', 'API_ADMIN_PORT', 'API_QUERY_TIMEOUT_MS', 'LOG_SEARCH_ROWS'],
  ...['REPLAY_STREAMS', 'REDIS_PORT', 'DIRECTORY_REDIS_PORT', 'CLICKHOUSE_PORT', 'S3_PORT', 'CLICKHOUSE_MEMORY_BYTES'],
] as const

/** Settings with one of a few words, which is shown. */
export const WORDS = {
  LOG_LEVEL: ['fatal', 'error', 'warn', 'info', 'debug', 'trace'],
  REDIS_DURABILITY: ['fsync', 'replicated', 'unchecked'],
  CLICKHOUSE_REPLICATED: ['auto', 'on'],
  CLICKHOUSE_FSYNC: ['on', 'off'],
} as const

/** Settings with addresses, of which scheme, host and port are shown. */
export const ADDRESSES = [
  ...['REDIS_URL', 'DIRECTORY_REDIS_URL', 'CLICKHOUSE_URL', 'S3_ENDPOINT', 'S3_PUBLIC_ENDPOINT', 'PUBLIC_URL'],
  ...['AUTH_JWKS_URL', 'CONSOLE_ISSUER', 'WORKLOAD_JWKS_URL'],
] as const

/** Settings of which is shown whether they are set. */
export const HIDDEN = [
  ...['BIND_HOST', 'ADMIN_BIND_HOST', 'CLICKHOUSE_USER', 'CLICKHOUSE_DATABASE', 'CLICKHOUSE_CLUSTER', 'S3_REGION'],
  ...['S3_BUCKET', 'IDENTITY_PROVIDERS', 'AUTH_ISSUER', 'AUTH_AUDIENCE', 'CONSOLE_CLIENT_ID', 'CONSOLE_SCOPE'],
  ...[
    'DELIVERY_ALLOWED_RECEIVERS',
    'MAIL_FROM',
    'CONSOLE_AUDIENCE',
    'WORKLOAD_ISSUER',
    'WORKLOAD_AUDIENCE',
    'LOCAL_DIR',
    'REDIS_MAX_MEMORY',
  ],
  'DIRECTORY_REDIS_MAX_MEMORY',
] as const

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the settings of an environment by name: values that cannot be a secret, hosts of addresses, or whether it is set. */
export function describeSettings(env: Environment): Record<string, string> {
  const shown: Record<string, string> = {}
  for (const name of [...NUMBERS, ...Object.keys(WORDS), ...ADDRESSES, ...SECRET_SETTINGS, ...HIDDEN]) {
    const value = env[name]
    if (value === undefined || value === '') shown[name] = env[`${name}_FILE`] ? 'set, by a file' : 'not set'
    else shown[name] = shownValue(name, value) ?? 'set'
  }
  return shown
}

function shownValue(name: string, value: string): string | undefined {
  if ((NUMBERS as readonly string[]).includes(name)) return /^\d+(\.\d+)?$/.test(value) ? value : undefined
  if (name in WORDS) return (WORDS[name as keyof typeof WORDS] as readonly string[]).find(word => word === value)
  return (ADDRESSES as readonly string[]).includes(name) ? withoutCredentials(value) : undefined
}

/** Returns scheme, host and port of one address or several, or undefined if there is none. */
export function withoutCredentials(text: string): string | undefined {
  const hosts = clickhouseAddresses(text)
    .flat()
    .map(address => /^(?:([a-z0-9+.-]+:\/\/)(?:[^/?#]*@)?)?([^/?#@]+)/i.exec(address))
    .map(match => (match === null ? undefined : `${match[1] ?? ''}${match[2]}`))
  return hosts.every(host => host !== undefined) ? hosts.join(', ') : undefined
}
