import { readdirSync, readFileSync } from 'node:fs'
import { load } from 'js-yaml'
import { expect, it } from 'vitest'
import { apiConfigSchema } from '../../api/config.ts'
import { ingestConfigSchema } from '../../ingest/config.ts'
import { POOL_NAMES } from '../../schemas/queues/names.ts'
import { workersConfigSchema } from '../../workers/config.ts'
import { chartSettings, OWN_SETTINGS, SETTINGS_FILE } from './write-settings.ts'
import { chartValues, VALUES_FILE, valuesPage } from './write-values.ts'

const CHART = new URL('penstock/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, CHART), 'utf8')

type Settings = Readonly<Record<string, unknown>>
interface Pool {
  readonly queues: readonly string[]
  readonly settings?: Settings
}
interface Values {
  readonly settings?: Settings
  readonly edge?: { readonly settings?: Settings; readonly shutdownSeconds?: number }
  readonly api?: { readonly settings?: Settings; readonly shutdownSeconds?: number }
  readonly migrate?: { readonly settings?: Settings }
  readonly workers?: {
    readonly settings?: Settings
    readonly shutdownSeconds?: number
    readonly pools?: Readonly<Record<string, Pool | null>>
  }
  readonly secrets?: { readonly required: readonly string[]; readonly optional: readonly string[] }
}

const defaults = load(read('values.yaml')) as Values
const examples = readdirSync(CHART).filter(name => /^values-.*\.yaml$/.test(name))
const known = chartSettings()
const everySetting = new Set([...Object.values(known.settings).flat(), ...OWN_SETTINGS])

it('knows the settings of every process and all queues: node deploy/kubernetes/write-settings.ts after a change', () => {
  expect(JSON.parse(readFileSync(SETTINGS_FILE, 'utf8'))).toEqual(known)
})

it('names no environment variable that is neither a setting of a process nor one of Node', () => {
  for (const file of readdirSync(new URL('templates/', CHART))) {
    const named = [...read(`templates/${file}`).matchAll(/\bname: ([A-Z][A-Z0-9_]+)\b/g)].map(match => match[1] ?? '')
    expect(
      named.filter(name => !everySetting.has(name) && name !== 'NODE_OPTIONS'),
      file,
    ).toEqual([])
  }
})

it.each(['values.yaml', ...examples])('%s gives processes only settings that they have', file => {
  const values = load(read(file)) as Values
  const { edge, workers, api, migrate, toolbox } = known.settings
  const unknown = (settings: Settings | undefined, names: readonly string[]) =>
    Object.keys(settings ?? {}).filter(name => !names.includes(name))
  expect(unknown(values.settings, toolbox)).toEqual([])
  expect(unknown(values.edge?.settings, edge)).toEqual([])
  expect(unknown(values.workers?.settings, workers)).toEqual([])
  expect(unknown(values.api?.settings, api)).toEqual([])
  expect(unknown(values.migrate?.settings, migrate)).toEqual([])
  for (const pool of Object.values(values.workers?.pools ?? {})) expect(unknown(pool?.settings, workers)).toEqual([])
  const secrets = [...(values.secrets?.required ?? []), ...(values.secrets?.optional ?? [])]
  expect(secrets.filter(name => !everySetting.has(name))).toEqual([])
})

it.each(['values.yaml', ...examples])('%s gives every queue one pool', file => {
  const { workers } = load(read(file)) as Values
  const pools = Object.values({ ...defaults.workers?.pools, ...workers?.pools }).filter(pool => pool !== null)
  expect(pools.flatMap(({ queues }) => queues).sort()).toEqual([...POOL_NAMES].sort())
})

it('gives each process the time of its shutdown that it has by default', () => {
  const seconds = { edge: ingestConfigSchema, workers: workersConfigSchema, api: apiConfigSchema }
  for (const [name, schema] of Object.entries(seconds)) {
    const { shutdownSeconds } = defaults[name as keyof typeof seconds] ?? {}
    expect(shutdownSeconds, name).toBe(Number(schema.shape.SHUTDOWN_DEADLINE_MS.parse(undefined)) / 1_000)
  }
})

it('explains every value in the README', () => {
  const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8')
  const missing = Object.keys(defaults).filter(name => !readme.includes(`\`${name}`))
  expect(missing).toEqual([])
})

it('lists every value with its type and meaning in values.md: node deploy/kubernetes/write-values.ts after a change', () => {
  const values = chartValues()
  expect(values.filter(({ type, description }) => !type || !description).map(({ path }) => path)).toEqual([])
  expect(readFileSync(VALUES_FILE, 'utf8')).toBe(valuesPage())
})

it('has a default for every value that the schema allows, and no other', () => {
  const allowed = chartValues().filter(({ path }) => !path.includes('<name>') && path !== 'global')
  const paths = new Set(allowed.map(({ path }) => path))
  const leaves = (value: unknown, path: string): string[] =>
    paths.has(path) || value === null || typeof value !== 'object'
      ? [path]
      : Object.entries(value).flatMap(([name, child]) => leaves(child, path === '' ? name : `${path}.${name}`))
  expect(leaves(defaults, '').filter(path => !paths.has(path))).toEqual([])
  // Components have the options of all pods, without a default of their own.
  const missing = allowed.filter(
    ({ fallback, shared, path }) => fallback === undefined && shared !== path.split('.').at(-1),
  )
  expect(missing.map(({ path }) => path).filter(path => !path.includes('.topologySpread.'))).toEqual([])
})
