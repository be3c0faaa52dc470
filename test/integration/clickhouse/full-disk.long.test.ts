import { mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { KEEP_FREE_BYTES, startClickHouse } from '../../../deploy/local/stores/clickhouse.ts'
import { mountSmallDisk } from '../../support/chaos/small-disk.ts'
import { SERVER_PASSWORD } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

const ROWS = 50
const TIMEOUT_MS = 120_000

async function insert(clickhouse: ClickHouseClient, id: number): Promise<void> {
  await clickhouse.insert({
    table: 'items',
    values: Array.from({ length: ROWS }, (_, i) => ({ id, text: `${id} ${i} ${'text '.repeat(100)}` })),
    format: 'JSONEachRow',
    clickhouse_settings: { insert_deduplication_token: `${id}`, async_insert: 0 },
  })
}

it(
  'a ClickHouse whose disk becomes full refuses inserts before there is no space, and stores them all afterwards',
  async ({ skip }) => {
    const dir = await mkdtemp(join(tmpdir(), 'penstock-full-disk-'))
    const data = join(dir, 'data')
    const disk = await mountSmallDisk(data, 3 * KEEP_FREE_BYTES, KEEP_FREE_BYTES / 2)
    if (typeof disk === 'string') {
      await rm(dir, { recursive: true })
      return skip(`no disk can be mounted: ${disk}`)
    }
    const options = { dir: data, port: await freePort(), password: SERVER_PASSWORD, log: () => {} }
    const server = await startClickHouse(options)
    const clickhouse = createClickHouse({ url: server.url, database: 'default' })
    let isOver = false
    let sent = 0
    const refusals: string[] = []
    const client = async () => {
      while (!isOver) {
        const id = sent++
        await until(
          'an insert is stored',
          () =>
            insert(clickhouse, id).then(
              () => true,
              error => void refusals.push((error as Error).message),
            ),
          { deadlineMs: TIMEOUT_MS },
        )
      }
    }
    try {
      await clickhouse.command({
        query: `CREATE TABLE items (id UInt32, text String) ENGINE = MergeTree ORDER BY id
        SETTINGS non_replicated_deduplication_window = 100000`,
      })
      const clients = Promise.all([client(), client(), client()])
      for (let round = 1; round <= 3; round++) {
        const [sentBefore, refusedBefore] = [sent, refusals.length]
        await until('inserts and merges are in progress', () => sent > sentBefore + 100)
        await disk.fill()
        await until('inserts are refused', () => refusals.length > refusedBefore + 10)
        const { bavail, bsize } = await statfs(data)
        expect(bavail * bsize).toBeGreaterThan(KEEP_FREE_BYTES / 4)
        await disk.free()
      }
      isOver = true
      await clients
      for (const refusal of refusals) expect(refusal).toContain('Cannot reserve')
      const result = await clickhouse.query({
        query: 'SELECT count() AS count, uniqExact(id, text) AS distinct FROM items',
        format: 'JSONEachRow',
      })
      expect(await result.json()).toEqual([{ count: sent * ROWS, distinct: sent * ROWS }])
    } finally {
      isOver = true
      await clickhouse.close()
      await server.stop()
      await disk.unmount()
      await rm(dir, { recursive: true, force: true })
    }
  },
  TIMEOUT_MS,
)
