import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { GOALS } from './goals.ts'
import { BASELINE } from './peers/baseline.ts'
import { COLLECTOR_IN_MEMORY, COLLECTOR_PERSISTENT } from './peers/otelcol/start-collector.ts'

it('has goals for scenarios that exist', () => {
  const files = readdirSync(fileURLToPath(new URL('scenarios', import.meta.url)), { encoding: 'utf8', recursive: true })
  for (const { scenario } of GOALS) expect(files.map(file => basename(file))).toContain(`${scenario}.ts`)
})

it('has one goal for a figure or ratio', () => {
  const keys = GOALS.map(({ scenario, row, to }) => JSON.stringify([scenario, row, to]))
  expect(new Set(keys).size).toBe(keys.length)
})

it('compares the pipeline with the Collector by the names of its rows', () => {
  const rivals = GOALS.filter(({ to }) => to?.startsWith('OpenTelemetry Collector')).map(({ to }) => to)
  expect(rivals).toEqual([
    `${COLLECTOR_IN_MEMORY}, 200 spans`,
    `${COLLECTOR_PERSISTENT}, 200 spans`,
    `${COLLECTOR_IN_MEMORY}, 20 spans`,
  ])
  expect(GOALS.some(({ to }) => to?.startsWith(BASELINE))).toBe(true)
})
