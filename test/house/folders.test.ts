import { dirname } from 'node:path'
import { expect, it } from 'vitest'
import { trackedFiles } from './prose.ts'

const FILES_MAX = 25

/** The root has what tools look for there; migrations and decisions are only added. */
const UNBOUNDED = new Set(['.', 'clickhouse/migrations', 'docs/decisions'])

it(`no folder has more than ${FILES_MAX} files, tests not counted`, () => {
  const sizes = new Map<string, number>()
  for (const file of trackedFiles().filter(name => !name.endsWith('.test.ts'))) {
    sizes.set(dirname(file), (sizes.get(dirname(file)) ?? 0) + 1)
  }
  const crowded = [...sizes].filter(([folder, size]) => size > FILES_MAX && !UNBOUNDED.has(folder))
  expect(crowded).toEqual([])
})
