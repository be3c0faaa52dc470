import { readFileSync } from 'node:fs'
import { load, YAML11_SCHEMA } from 'js-yaml'
import { expect, it } from 'vitest'
import { apiConfigSchema } from '../../api/config.ts'
import { migrateConfigSchema } from '../../clickhouse/migrate/config.ts'
import { ingestConfigSchema } from '../../ingest/config.ts'
import { POOL_NAMES } from '../../schemas/queues/names.ts'
import { workersConfigSchema } from '../../workers/config.ts'

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly entrypoint?: readonly string[]
  readonly volumes?: readonly unknown[]
  readonly user?: string
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly security_opt?: readonly string[]
  readonly mem_limit?: string
  readonly logging?: { readonly options?: Readonly<Record<string, string>> }
  readonly environment?: Readonly<Record<string, string>>
  readonly secrets?: readonly (string | { readonly source: string })[]
}

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
const { services, secrets } = load(read('compose.yaml'), { schema: YAML11_SCHEMA }) as {
  services: Readonly<Record<string, Service>>
  secrets: Readonly<Record<string, unknown>>
}
const all = Object.entries(services)
const ofPenstock = all.filter(([, { image }]) => image.includes('PENSTOCK_IMAGE'))

/** Settings whose defaults are right for these containers. A file of your own may replace them (README.md). */
const LEFT_OUT = new Set([
  // The image and this file decide on addresses, ports and times.
  ...['BIND_HOST', 'ADMIN_BIND_HOST', 'SHUTDOWN_DEADLINE_MS', 'DRAIN_DELAY_MS', 'INGEST_PORT', 'INGEST_ADMIN_PORT'],
  ...['INGEST_GRPC_PORT', 'WORKERS_ADMIN_PORT', 'API_PORT', 'API_ADMIN_PORT'],
  // The key of make-secrets.sh is set instead.
  'AUTH_JWKS_URL',
  // One ClickHouse, and one Redis without replicas, which syncs.
  ...['CLICKHOUSE_DATABASE', 'CLICKHOUSE_CLUSTER', 'CLICKHOUSE_REPLICATED', 'CLICKHOUSE_FSYNC', 'REDIS_DURABILITY'],
  ...['REDIS_MIN_REPLICAS', 'REDIS_MAX_MEMORY_SHARE', 'QUEUE_PARTITIONS'],
  // Bounds that fit the limits of memory, and times that fit each other.
  ...['MAX_CONNECTIONS', 'HELD_BODY_BYTES', 'QUEUE_MAX_COST'],
  ...['COMMIT_TIMEOUT_MS', 'VERDICT_TIMEOUT_MS', 'VERDICT_MAX_WAITING', 'BATCH_MAX_ROWS', 'BATCH_MAX_BYTES'],
  ...['BATCH_MAX_AGE_MS', 'SYMBOLICATION_HEAP_BYTES', 'INSERT_TIMEOUT_MS', 'JOB_LOCK_MS', 'JOB_STALLED_CHECK_MS'],
  'SWEEP_INTERVAL_MS',
  ...['DEAD_LETTER_MAX_BYTES_PER_DAY', 'DEAD_LETTER_MAX_COUNT_PER_DAY'],
  ...['DIRECTORY_BACKUP_INTERVAL_S', 'DIRECTORY_BACKUP_KEEP'],
])

it('gives every queue a pool', () => {
  const named = all.flatMap(([, { command = [] }]) => {
    const flag = command.indexOf('--pools')
    return flag < 0 ? [] : (command[flag + 1] ?? '').split(',')
  })
  expect(named.sort()).toEqual([...POOL_NAMES].sort())
})

it('names no variable of a process that is not a setting', () => {
  const schemas = [ingestConfigSchema, workersConfigSchema, apiConfigSchema, migrateConfigSchema]
  const known = new Set(['NODE_OPTIONS', 'LOCAL_DIR', ...schemas.flatMap(({ shape }) => Object.keys(shape))])
  const names = ofPenstock.flatMap(([, { environment = {} }]) => Object.keys(environment))
  expect(names.map(name => name.replace(/_FILE$/, '')).filter(name => !known.has(name))).toEqual([])
})

it('passes on every setting of a process that an operator of one machine may want to change', () => {
  const processes = {
    edge: ingestConfigSchema,
    workers: workersConfigSchema,
    api: apiConfigSchema,
    migrate: migrateConfigSchema,
  }
  for (const [process, { shape }] of Object.entries(processes)) {
    const containers = ofPenstock.filter(([, { command = [] }]) => command[0] === process)
    expect(containers, process).not.toEqual([])
    for (const [name, { environment = {} }] of containers) {
      const given = Object.keys(environment).map(each => each.replace(/_FILE$/, ''))
      const left = Object.keys(shape).filter(setting => !given.includes(setting) && !LEFT_OUT.has(setting))
      expect(left, name).toEqual([])
    }
  }
})

it('passes on every setting that README.md names', () => {
  const known = new Set(
    Object.keys({ ...apiConfigSchema.shape, ...ingestConfigSchema.shape, ...migrateConfigSchema.shape }),
  )
  const [, section = ''] = read('README.md').split('## One machine')
  const named = [...section.matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name = '']) => name)
  const isPassed = (name: string) => ofPenstock.some(([, { environment = {} }]) => name in environment)
  // An identity provider replaces the key that is in compose.yaml.
  expect(named.filter(name => known.has(name) && name !== 'AUTH_JWKS_URL' && !isPassed(name))).toEqual([])
})

it('gives each container the files that its variables name, and no other', () => {
  for (const [name, { environment = {}, secrets: given = [] }] of ofPenstock) {
    const named = Object.values(environment).flatMap(value => /^\/run\/secrets\/(.+)$/.exec(value)?.[1] ?? [])
    // `penstock token` finds the key by its own name, in LOCAL_DIR.
    if (environment.LOCAL_DIR) named.push('secrets.json')
    expect([...given].sort(), name).toEqual(named.sort())
  }
})

it('gives commands the stores and the key of backups that workers have', () => {
  const [, workers] = ofPenstock.find(([, { command = [] }]) => command[0] === 'workers') as [string, Service]
  expect(services.penstock?.environment).toMatchObject(workers.environment ?? {})
  expect(workers.environment).toHaveProperty('DIRECTORY_BACKUP_KEY_FILE')
})

it('declares every secret, and make-secrets.sh creates its file', () => {
  const script = read('make-secrets.sh')
  const used = new Set(
    all.flatMap(([, service]) =>
      (service.secrets ?? []).map(given => (typeof given === 'string' ? given : given.source)),
    ),
  )
  expect(Object.keys(secrets).sort()).toEqual([...used].sort())
  for (const name of used) expect(script).toContain(name)
})

it.each(all)(
  'restricts %s: no capability, a read-only root, limits of memory and logs, an image of one version',
  (name, service) => {
    expect(service.read_only).toBe(true)
    expect(service.cap_drop).toEqual(['ALL'])
    expect(service.security_opt).toEqual(['no-new-privileges:true'])
    expect(service.mem_limit).toMatch(/^\d+[mg]$/)
    expect(service.logging?.options).toHaveProperty('max-size')
    if (service.image.includes('PENSTOCK_IMAGE')) return
    expect(service.image).toMatch(/:v?\d+\.\d+/)
    // One container changes the owner of a volume, and ends.
    if (name !== 's3-directory') expect(service.user).toMatch(/^[1-9]\d*:\d+$/)
  },
)

it('scrapes the jobs that the alerts know', () => {
  const jobsOf = (path: string) => [...read(path).matchAll(/job_name: (\S+)/g)].map(([, name]) => name)
  expect(jobsOf('prometheus.yml')).toEqual(jobsOf('../prometheus/prometheus.yml'))
})

it('lets a ClickHouse that was killed forget what it lost, before it starts', () => {
  const { entrypoint, volumes } = services.clickhouse as Service
  expect(volumes).toContain('../clickhouse/forget-lost-parts.sh:/opt/forget-lost-parts.sh:ro')
  expect(entrypoint?.at(-1)).toBe('sh /opt/forget-lost-parts.sh /var/lib/clickhouse && exec /entrypoint.sh')
})
