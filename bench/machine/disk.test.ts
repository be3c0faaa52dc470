import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { timeSyncs, untilDiskQuiet } from './disk.ts'

let dir = ''
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-bench-'))
})
afterAll(() => rm(dir, { recursive: true }))

it('measures each fsync and leaves no file', async () => {
  const times = await timeSyncs(dir, 5)
  expect(times).toHaveLength(5)
  for (const ms of times) expect(ms).toBeGreaterThan(0)
  expect(await readdir(dir)).toEqual([])
})

it('ends when the disk is quiet and leaves no file', async () => {
  await untilDiskQuiet(dir)
  expect(await readdir(dir)).toEqual([])
}, 30_000)
