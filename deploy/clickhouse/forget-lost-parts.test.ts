import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const SCRIPT = fileURLToPath(new URL('forget-lost-parts.sh', import.meta.url))
const TABLE = 'store/9b4/9b4bc2e0-edc9-4ff0-ba39-2037ed972e25'
const added = (part: string, token: string) => `1\t${part}\t${token}\n`
const dropped = (part: string, token: string) => `2\t${part}\t${token}\n`

let disk: string

beforeEach(async () => {
  disk = await mkdtemp(join(tmpdir(), 'penstock-parts-'))
})
afterEach(() => rm(disk, { recursive: true }))

describe('a token at the end of the log of a table', () => {
  it('is forgotten if its part does not exist', async () => {
    await store(['20261126_1_1_0', 'tmp_insert_20261126_2_2_0', 'detached', 'format_version.txt'])
    await log(1, added('20261126_1_1_0', 'a'), added('20261126_2_2_0', 'b'))
    expect(await run()).toBe(`forgot 20261126_2_2_0 of ${TABLE}, which was lost\n`)
    expect(await logged(1)).toBe(
      added('20261126_1_1_0', 'a') + added('20261126_2_2_0', 'b') + dropped('20261126_2_2_0', 'b'),
    )
  })

  it('is forgotten once, however often the script runs', async () => {
    await store([])
    await log(1, added('20261126_2_2_0', 'b'))
    await run()
    const once = await logged(1)
    expect(await run()).toBe('')
    expect(await logged(1)).toBe(once)
  })

  it.each([
    ['as it was written', '20261126_2_2_0'],
    ['merged with others', '20261126_1_14_2'],
    ['changed by a mutation', '20261126_2_2_0_7'],
  ])('is kept if its part exists %s', async (_, part) => {
    await store([part])
    await log(1, added('20261126_2_2_0', 'b'))
    expect(await run()).toBe('')
    expect(await logged(1)).toBe(added('20261126_2_2_0', 'b'))
  })

  it('is not kept by a part of another partition, or with other numbers', async () => {
    await store(['20261125_2_2_0', '20261126_10_14_1', '20261126_1_1_0'])
    await log(1, added('20261126_2_2_0', 'b'))
    expect(await run()).toContain('forgot 20261126_2_2_0')
  })

  it('is found in the log before the newest one, if that has just been begun', async () => {
    await store([])
    await log(9, added('20261126_2_2_0', 'b'))
    await log(10)
    expect(await run()).toContain('forgot 20261126_2_2_0')
    expect(await logged(10)).toBe(dropped('20261126_2_2_0', 'b'))
  })

  it('is kept if its part is on another disk of the table', async () => {
    const other = await mkdtemp(join(tmpdir(), 'penstock-parts-'))
    await mkdir(join(other, TABLE, '20261126_2_2_0'), { recursive: true })
    await store([])
    await log(1, added('20261126_2_2_0', 'b'))
    try {
      expect(await run(disk, other)).toBe('')
    } finally {
      await rm(other, { recursive: true })
    }
  })

  it('alone is examined: parts of tokens long before it may have expired', async () => {
    await store(['20261126_70_70_0'])
    const later = Array.from({ length: 70 }, (_, i) => added('20261126_70_70_0', `later ${i}`))
    await log(1, added('20260101_1_1_0', 'old'), ...later)
    expect(await run()).toBe('')
  })
})

it('does nothing to data that no server has written yet', async () => {
  expect(await run()).toBe('')
})

async function store(names: string[]): Promise<void> {
  await mkdir(join(disk, TABLE, 'deduplication_logs'), { recursive: true })
  for (const name of names) await mkdir(join(disk, TABLE, name))
}

const logFile = (number: number) => join(disk, TABLE, 'deduplication_logs', `deduplication_log_${number}.txt`)
const log = (number: number, ...records: string[]) => writeFile(logFile(number), records.join(''))
const logged = (number: number) => readFile(logFile(number), 'utf8')

async function run(...disks: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(SCRIPT, disks.length > 0 ? disks : [disk])
  return stdout
}
