import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Letter } from '../../../clickhouse/queries/letters/letter.ts'
import { type PurgeLettersDeps, purgeLetters } from '../../../letters/purge-letters.ts'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { MIB } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { connectLetters, traceFrame } from '../../support/dead-letters.ts'
import { collect } from '../../support/oracles/collect.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/3`
const database = await createTestDatabase(services.clickhouseUrl, `purged_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const letters = connectLetters(services, redisUrl, clickhouse)
const QUEUES: readonly QueueName[] = ['traces', 'exceptions', 'dead-letters', 'dead-letter-index', 'receipts']
let pools: TestPools
let surface: { workspaceId: string; surfaceId: string }

beforeAll(async () => {
  await letters.redis.flushdb()
  pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
})

beforeEach(() => {
  surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
})

afterAll(async () => {
  await pools?.stop()
  await letters.close()
  await clickhouse.close()
  await database.drop()
})

/** Stores one object with a dead letter for each text. */
async function store(...texts: string[]): Promise<Letter[]> {
  const frames = texts.map(text => traceFrame(surface, Buffer.from(text)))
  await letters.refuse('traces', newId('key'), frames)
  await letters.untilDone(...QUEUES)
  const stored = await letters.list(surface.workspaceId)
  return texts.map((_, index) => stored.find(letter => letter.index === index) as Letter)
}

function purge(keys: readonly Letter[], changes: Partial<PurgeLettersDeps> = {}) {
  const signal = AbortSignal.timeout(30_000)
  return purgeLetters({ ...letters.deps, ...changes }, surface.workspaceId, { keys }, { limit: 500 }, signal)
}

/** Returns the bytes of all objects of the workspace. */
async function stored(): Promise<string[]> {
  const objects = (await collect(letters.objects.list(`dead-letters/${surface.workspaceId}/`))).flat()
  return Promise.all(objects.map(async ({ key }) => String((await letters.objects.get(key, MIB))?.body)))
}

it('keeps the bytes of a letter whose row arrives later', async () => {
  const [late, ...others] = (await store('late', 'second', 'third')) as [Letter, ...Letter[]]
  const isLate = `workspace_id = '${surface.workspaceId}' AND job_index = 0`
  await clickhouse.command({ query: `CREATE TABLE late_rows AS dead_letters` })
  await clickhouse.command({ query: `INSERT INTO late_rows SELECT * FROM dead_letters WHERE ${isLate}` })
  await clickhouse.command({ query: `DELETE FROM dead_letters WHERE ${isLate}` })
  expect(await letters.list(surface.workspaceId)).toHaveLength(2)
  for (const letter of others) expect(await purge([letter])).toMatchObject({ purged: 1, skipped: [] })
  expect(await stored()).toEqual([expect.stringContaining('late')])
  expect((await stored()).join()).not.toMatch(/second|third/)
  await clickhouse.command({
    query: 'INSERT INTO dead_letters SELECT * FROM late_rows',
    clickhouse_settings: { insert_deduplicate: 0 },
  })
  expect(await letters.list(surface.workspaceId)).toEqual([late])
  expect(await purge([late])).toMatchObject({ purged: 1 })
  expect(await stored()).toEqual([])
})

it('does not restore the bytes of a letter that another purge has removed meanwhile', async () => {
  const [first, second] = (await store('first', 'second', 'third')) as [Letter, Letter, Letter]
  let writes = 0
  const put: PurgeLettersDeps['objects']['put'] = async (...args) => {
    // The other purge comes to its end between the read and the write of this one.
    if (++writes === 1) expect(await purge([second])).toMatchObject({ purged: 1 })
    await letters.objects.put(...args)
  }
  const { objects } = letters
  const slow = {
    put,
    head: objects.head.bind(objects),
    get: objects.get.bind(objects),
    deleteMany: objects.deleteMany.bind(objects),
  }
  expect(await purge([first], { objects: slow })).toMatchObject({ purged: 1 })
  expect(writes).toBe(2)
  expect(await stored()).toEqual([expect.stringContaining('third')])
  expect((await stored()).join()).not.toMatch(/first|second/)
})
