import { expect, it } from 'vitest'
import { createReadiness } from './readiness.ts'

const SCHEMA = 'clickhouse: the table spans is missing'
const STRANGER = 'ClickHouse belongs to another installation'

type Store = 'directory' | 'clickhouse' | 'schema' | 'installation'

function openReadiness() {
  const faults: Partial<Record<Store, string | undefined>> = {}
  const isReady = createReadiness({
    directory: () => faults.directory,
    clickhouse: async () => faults.clickhouse,
    schema: () => faults.schema,
    installation: () => faults.installation,
  })
  return { faults, isReady }
}

it.each(['directory', 'clickhouse', 'schema', 'installation'] as const)('is not ready before: %s', async name => {
  const { faults, isReady } = openReadiness()
  faults[name] = 'a fault'
  expect(await isReady()).toBe('a fault')
  faults[name] = undefined
  expect(await isReady()).toBe(true)
})

it('stays ready while a store is unavailable or the schema differs', async () => {
  const { faults, isReady } = openReadiness()
  expect(await isReady()).toBe(true)
  Object.assign(faults, { directory: 'down', clickhouse: 'down' })
  expect(await isReady()).toBe(true)
  faults.schema = SCHEMA
  expect(await isReady()).toEqual({ note: SCHEMA })
})

it('is not ready with the stores of different installations, also while the schema differs', async () => {
  const { faults, isReady } = openReadiness()
  expect(await isReady()).toBe(true)
  faults.schema = SCHEMA
  faults.installation = STRANGER
  expect(await isReady()).toBe(STRANGER)
  faults.installation = undefined
  expect(await isReady()).toEqual({ note: SCHEMA })
})
