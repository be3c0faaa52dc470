import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse, insertNative } from '../../../clickhouse/client.ts'
import { PermanentError, TransientError } from '../../../shared/runtime/errors.ts'
import { countAwakeMs } from '../../support/count-awake-ms.ts'
import { distantUrl } from '../../support/services/distant-url.ts'
import { type Services, startServices } from '../../support/services/services.ts'
import { until } from '../../support/until.ts'

let services: Services
beforeAll(async () => {
  services = await startServices()
})
afterAll(() => services?.stop())

describe.each([
  { way: 'plain', addressOf: (url: string) => url },
  { way: 'compressed', addressOf: distantUrl },
])('insertNative, $way', ({ way, addressOf }) => {
  let client: ClickHouseClient

  beforeAll(async () => {
    const admin = createClickHouse({ url: services.clickhouseUrl })
    await admin.command({ query: `CREATE DATABASE ${way}` })
    await admin.close()
    client = createClickHouse({ url: addressOf(services.clickhouseUrl), database: way })
    await client.command({
      query: `CREATE TABLE texts (id UInt64, text String) ENGINE = MergeTree PARTITION BY id % 3 ORDER BY id
              SETTINGS non_replicated_deduplication_window = 1000`,
    })
    await client.command({
      query:
        'CREATE TABLE sums (n UInt64) ENGINE = SummingMergeTree ORDER BY () SETTINGS non_replicated_deduplication_window = 1000',
    })
    await client.command({ query: 'CREATE MATERIALIZED VIEW sums_of_texts TO sums AS SELECT count() AS n FROM texts' })
  })
  afterAll(() => client?.close())

  it('adds a block once, also in dependent views, however often it is repeated with its token', async () => {
    const block = blockOf(1_000)
    await Promise.all([insert(block, 'token-1'), insert(block, 'token-1'), insert(block, 'token-1')])
    await insert(block, 'token-1')
    expect(await counts()).toEqual([1_000, 1_000])
    await insert(block, 'token-2')
    expect(await counts()).toEqual([2_000, 2_000])
  })

  it('stores a block of more rows than the server joins as one part a partition, in fewer bytes if compressed', async () => {
    const before = await counts()
    const block = blockOf(1_200_000)
    const plainBytes = block.reduce((sum, { length }) => sum + length, 0)
    const [receivedBefore = 0] = await numbers(RECEIVED_BYTES)
    await insert(block, 'large')
    const [receivedAfter = 0] = await numbers(RECEIVED_BYTES)
    expect(receivedAfter - receivedBefore < plainBytes / 2).toBe(way === 'compressed')
    expect(
      await numbers(`SELECT rows FROM system.parts WHERE database = '${way}' AND table = 'texts' AND rows > 100000`),
    ).toEqual([400_000, 400_000, 400_000])
    await insert(block, 'large')
    expect(await counts()).toEqual(before.map(count => count + 1_200_000))
  })

  it('reports broken bytes as permanent: a text longer than the block, or a block that is cut short', async () => {
    const before = await counts()
    const broken = blockOf(100_000)
    Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).copy(broken[3] as Buffer, 0)
    await expect(insert(broken, 'broken')).rejects.toThrow(PermanentError)
    await expect(insert([Buffer.concat(blockOf(10)).subarray(0, -5)], 'short')).rejects.toThrow(PermanentError)
    expect(await counts()).toEqual(before)
  })

  it('reports an older schema as transient', async () => {
    const block = blockOf(1)
    const request = { block, deduplicationToken: 'x', timeoutMs: 5_000 }
    await expect(insertNative(client, { ...request, table: 'missing' })).rejects.toThrow(TransientError)
    await expect(insertNative(client, { ...request, table: 'texts', columns: ['id', 'words'] })).rejects.toThrow(
      TransientError,
    )
    const renamed = [block[0] as Buffer, block[1] as Buffer, nativeColumn('words', 'String'), block[3] as Buffer]
    // The columns of the block are not those of the insert, so it is refused instead of stored without them.
    await expect(insertNative(client, { ...request, table: 'texts', block: renamed })).rejects.toThrow()
  })

  it('gives up at its deadline, and a repeat adds what is missing', async () => {
    const [before = 0] = await counts()
    const block = blockOf(500)
    process.kill(services.clickhouse.pid, 'SIGSTOP')
    const awakeMs = countAwakeMs()
    try {
      await expect(insert(block, 'late', 300)).rejects.toThrow(/did not confirm the insert within 300 ms/)
      expect(awakeMs()).toBeLessThan(2_000)
    } finally {
      process.kill(services.clickhouse.pid, 'SIGCONT')
    }
    await insert(block, 'late')
    await insert(block, 'late')
    expect(await counts()).toEqual([before + 500, before + 500])
  })

  it('adds a block exactly once when ClickHouse is killed under it', async () => {
    const [before = 0] = await counts()
    const block = blockOf(100_000)
    const first = insert(block, 'killed').catch((error: unknown) => error)
    await new Promise(resolve => setTimeout(resolve, 20))
    await services.clickhouse.kill9()
    const outcome = await first
    expect(outcome === undefined || outcome instanceof TransientError).toBe(true)
    await expect(insert(block, 'killed', 1_000)).rejects.toThrow(TransientError)
    await services.clickhouse.restart()
    await until('the block is there', () => insert(block, 'killed').then(() => true))
    expect(await counts()).toEqual([before + 100_000, before + 100_000])
  })

  function insert(block: Uint8Array[], deduplicationToken: string, timeoutMs = 20_000): Promise<void> {
    return insertNative(client, { table: 'texts', columns: ['id', 'text'], block, deduplicationToken, timeoutMs })
  }

  const counts = () => numbers('SELECT arrayJoin([(SELECT count() FROM texts), (SELECT sum(n) FROM sums)])')

  /** Returns the only column of a result. */
  async function numbers(query: string): Promise<number[]> {
    const result = await client.query({ query, format: 'JSONCompactEachRow' })
    return (await result.json<(string | number)[]>()).map(([value]) => Number(value))
  }
})

const RECEIVED_BYTES = "SELECT value FROM system.events WHERE event = 'NetworkReceiveBytes'"

/** A block of the columns id and text in ClickHouse's Native format. */
function blockOf(rows: number): Buffer[] {
  const ids = Buffer.alloc(8 * rows)
  const texts: Buffer[] = []
  for (let i = 0; i < rows; i++) {
    ids.writeBigUInt64LE(BigInt(i), 8 * i)
    texts.push(nativeString(`text ${i} of a span with a name`))
  }
  const head = Buffer.concat([varint(2), varint(rows), nativeColumn('id', 'UInt64')])
  return [head, ids, nativeColumn('text', 'String'), Buffer.concat(texts)]
}

const nativeColumn = (name: string, type: string) => Buffer.concat([nativeString(name), nativeString(type)])
const nativeString = (text: string) => Buffer.concat([varint(Buffer.byteLength(text)), Buffer.from(text)])

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest])
    bytes.push((rest % 128) + 128)
  }
}
