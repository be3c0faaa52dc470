import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse, isClickHouseCode } from '../../../clickhouse/client.ts'
import { readLimitSettings, selectChunks, selectRows } from '../../../clickhouse/select.ts'
import { countAwakeMs } from '../../support/count-awake-ms.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const READONLY = 164
const TIMEOUT_EXCEEDED = 159
const TOO_MANY_ROWS = 158
const TOO_MANY_ROWS_OR_BYTES = 396
const MEMORY_LIMIT_EXCEEDED = 241

const LIMITS = { timeoutMs: 20_000, memoryBytes: 2e8, readRows: 1e15, readBytes: 1e18, resultBytes: 1e8 }
const NEVER = new AbortController().signal

/** Returns a query that takes hours, and that `marker` identifies among the queries of the server. */
const endless = (marker: string) =>
  `SELECT count() AS n FROM numbers(1000000000000) WHERE sipHash64(number) = 0 /* ${marker} */`

describe('a read', () => {
  const { clickhouseUrl } = sharedServices()
  const clients: ClickHouseClient[] = []
  const clientOf = (limits: Partial<typeof LIMITS> = {}) => {
    const settings = readLimitSettings({ ...LIMITS, ...limits })
    const client = createClickHouse({ url: clickhouseUrl, user: 'default', password: '', settings })
    clients.push(client)
    return client
  }
  let admin: ClickHouseClient

  beforeAll(() => {
    admin = createClickHouse({ url: clickhouseUrl, user: 'default', password: '' })
    clients.push(admin)
  })
  afterAll(async () => {
    await admin.command({ query: `KILL QUERY WHERE query LIKE '%select-test-${process.pid}%' ASYNC` })
    await Promise.all(clients.map(client => client.close()))
  })

  const isRunning = async (marker: string) => {
    const result = await admin.query({
      query:
        'SELECT 1 FROM system.processes WHERE position(query, {marker: String}) > 0 AND query NOT LIKE {own: String}',
      query_params: { marker, own: '%system.processes%' },
      format: 'JSONEachRow',
    })
    return (await result.json()).length > 0
  }

  it.each<[string, (marker: string, signal: AbortSignal) => Promise<unknown>]>([
    ['of rows', (marker, signal) => selectRows(admin, { query: endless(marker), params: {}, signal })],
    [
      'of a binary format',
      (marker, signal) =>
        selectChunks(admin, { query: `${endless(marker)} FORMAT RowBinary`, params: {}, signal }, () => {}),
    ],
  ])('%s ends in the server when its reader leaves', async (name, read) => {
    const marker = `select-test-${process.pid} ${name}`
    const left = new AbortController()
    const reading = read(marker, left.signal).catch((error: unknown) => error)
    await until('the query runs', () => isRunning(marker))
    left.abort()
    expect(await reading).toBeInstanceOf(Error)
    await until('the query has ended', async () => !(await isRunning(marker)), { deadlineMs: 2_000 })
  })

  it('ends in the server after its time, also if its connection stays open', async () => {
    const awakeMs = countAwakeMs()
    const query = endless(`select-test-${process.pid} time`)
    const reading = selectRows(clientOf({ timeoutMs: 1_000 }), { query, params: {}, signal: NEVER })
    expect(isClickHouseCode(await reading.catch(error => error), TIMEOUT_EXCEEDED)).toBe(true)
    expect(awakeMs()).toBeLessThan(4_000)
  })

  it.each<[string, Partial<typeof LIMITS>, string, number]>([
    ['reads too many rows', { readRows: 1_000 }, 'SELECT sum(number) FROM numbers(2000000)', TOO_MANY_ROWS],
    [
      'returns too much',
      { resultBytes: 1_000 },
      "SELECT repeat('x', 1 + number) AS t FROM numbers(1000)",
      TOO_MANY_ROWS_OR_BYTES,
    ],
    [
      'needs too much memory',
      { memoryBytes: 5_000_000 },
      'SELECT length(groupArray(toString(number))) AS n FROM numbers(10000000)',
      MEMORY_LIMIT_EXCEEDED,
    ],
  ])('fails if it %s', async (_, limits, query, code) => {
    const error = await selectRows(clientOf(limits), { query, params: {}, signal: NEVER }).catch(failure => failure)
    expect(isClickHouseCode(error, code), String(error)).toBe(true)
  })

  it('cannot change anything', async () => {
    for (const client of [admin, clientOf()]) {
      const query = 'CREATE TABLE read_only_test (n UInt8) ENGINE = Memory'
      const error = await selectRows(client, { query, params: {}, signal: NEVER }).catch(failure => failure)
      expect(isClickHouseCode(error, READONLY), String(error)).toBe(true)
    }
  })

  it('binds every value as it is, in the URL and in the body', async () => {
    const text = `it's\t"a"\\n\r\n ${'%26&='} отказ 🦊`
    for (const padding of ['', 'x'.repeat(10_000)]) {
      const rows = await selectRows(clientOf(), {
        query: `SELECT {text: String} AS text, {texts: Array(String)} AS texts, {number: Int64} AS number,
                       length({padding: String}) AS padded, {numbers: Array(UInt8)} AS numbers`,
        params: { text, texts: [text, ''], number: -5, padding, numbers: [1, 2], absent: undefined },
        signal: NEVER,
      })
      expect(rows).toEqual([{ text, texts: [text, ''], number: '-5', padded: String(padding.length), numbers: [1, 2] }])
    }
  })

  it('binds long lists of values', async () => {
    const ids = Array.from({ length: 2_000 }, (_, i) => `id ${i}`)
    const rows = await selectRows<{ n: string }>(clientOf(), {
      query: "SELECT count() AS n FROM numbers(3000) WHERE concat('id ', toString(number)) IN {ids: Array(String)}",
      params: { ids },
      signal: NEVER,
    })
    expect(rows).toEqual([{ n: '2000' }])
  })
})
