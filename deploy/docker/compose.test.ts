import { readFileSync } from 'node:fs'
import { load, YAML11_SCHEMA } from 'js-yaml'
import { expect, it } from 'vitest'
import { apiConfigSchema } from '../../api/config.ts'
import { migrateConfigSchema } from '../../clickhouse/migrate/config.ts'
import { ingestConfigSchema } from '../../ingest/config.ts'
import { QUEUES } from '../../schemas/queues/names.ts'
import { workersConfigSchema } from '../../workers/config.ts'

interface Service {
  readonly image: string
  readonly command?: readonly string[]
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

it('gives every queue a pool', () => {
  const named = all.flatMap(([, { command = [] }]) => {
    const flag = command.indexOf('--pools')
    return flag < 0 ? [] : (command[flag + 1] ?? '').split(',')
  })
  expect(named.sort()).toEqual([...QUEUES].sort())
})

it('names no variable of a process that is not a setting', () => {
  const schemas = [ingestConfigSchema, workersConfigSchema, apiConfigSchema, migrateConfigSchema]
  const known = new Set(['NODE_OPTIONS', 'LOCAL_DIR', ...schemas.flatMap(({ shape }) => Object.keys(shape))])
  const names = ofPenstock.flatMap(([, { environment = {} }]) => Object.keys(environment))
  expect(names.map(name => name.replace(/_FILE$/, '')).filter(name => !known.has(name))).toEqual([])
})

it('gives each container the files that its variables name, and no other', () => {
  for (const [name, { environment = {}, secrets: given = [] }] of ofPenstock) {
    const named = Object.values(environment).flatMap(value => /^\/run\/secrets\/(.+)$/.exec(value)?.[1] ?? [])
    // `penstock token` finds the key by its own name, in LOCAL_DIR.
    if (environment.LOCAL_DIR) named.push('secrets.json')
    expect([...given].sort(), name).toEqual(named.sort())
  }
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
