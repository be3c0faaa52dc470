import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { findingAnswerSchema, findingsPageSchema } from '../../../schemas/http/findings/schemas.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import {
  createDatabase,
  insertExceptions,
  putWorkspace,
  START,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `finding_activity_${process.pid}`
const FINDING = `fnd_${'a'.repeat(26)}`
const LONE = `fnd_${'b'.repeat(26)}`
const CHAINED = `fnd_${'q'.repeat(26)}`
const CHAIN = `Traceback (most recent call last):
  File "/srv/shop/cart.py", line 9, in total
    return prices[sku]
KeyError: 'tea'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/shop/web.py", line 30, in checkout
    total(cart)
  File "/srv/venv/lib/python3.11/site-packages/retry/api.py", line 33, in call
    return function()
shop.CheckoutError: no price
`
const traceId = (number: number) => number.toString(16).padStart(32, '0')

describe('GET /v3/findings/{findingId}', () => {
  const services = sharedServices()
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
  let client: ClickHouseClient
  let api: TestApi
  let token: string

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    api = await startApi(services, DATABASE)
    token = await signToken()
    // 30 occurrences on each of three days, one a minute from 10:00, in 45 traces, 10 sessions and two versions.
    const rows = [3, 2, 1].flatMap(daysAgo =>
      Array.from({ length: 30 }, (_, i) => ({
        findingId: FINDING,
        traceId: traceId(i < 15 ? 100 * daysAgo + i + 1 : 0),
        receivedAt: today - daysAgo * DAY_MS + 10 * HOUR_MS + i * MINUTE_MS,
        occurredAtUnixNano: START + BigInt(daysAgo * 1_000 + i),
        message: `${i} `.padEnd(600, 'é'),
        serviceVersion: daysAgo === 3 ? '1.9.0' : '1.10.0',
        sessionId: i < 10 ? `session ${i}` : '',
      })),
    )
    await insertExceptions(client, rows)
    await insertExceptions(client, [
      { findingId: LONE, traceId: traceId(0), receivedAt: today - DAY_MS, message: '' },
      { findingId: FINDING, traceId: traceId(1), workspaceId: 'ws_2', surfaceId: 'srf_2', serviceName: 'other' },
    ])
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  it('counts occurrences by hour from the first retained day', async () => {
    const { occurrences, occurrenceCount } = await read(FINDING)
    expect(occurrences).toMatchObject({ from: iso(today - 3 * DAY_MS), bucketSeconds: 3_600 })
    expect(Date.parse(occurrences.to)).toBeGreaterThanOrEqual(Date.now() - 60_000)
    expect(occurrences.counts).toHaveLength((Date.parse(occurrences.to) - Date.parse(occurrences.from)) / HOUR_MS)
    expect(occurrences.counts.flatMap((count, hour) => (count > 0 ? [[hour, count]] : []))).toEqual([
      [10, 30],
      [34, 30],
      [58, 30],
    ])
    expect(occurrences.counts.reduce((sum, count) => sum + count, 0)).toBe(occurrenceCount)
  })

  it('counts in the requested time range, in steps of five minutes where it is short', async () => {
    const begin = today - DAY_MS + 10 * HOUR_MS
    const { occurrences } = await read(FINDING, `?from=${iso(begin + 7 * MINUTE_MS)}&to=${iso(begin + 20 * MINUTE_MS)}`)
    expect(occurrences).toEqual({
      from: iso(begin + 5 * MINUTE_MS),
      to: iso(begin + 20 * MINUTE_MS),
      bucketSeconds: 300,
      counts: [5, 5, 5],
    })
    const month = (await read(FINDING, `?from=${iso(today - 30 * DAY_MS)}&to=${iso(today)}`)).occurrences
    expect(month).toMatchObject({ bucketSeconds: 7_200, from: iso(today - 30 * DAY_MS), to: iso(today) })
    expect(month.counts).toHaveLength(360)
    expect(month.counts.reduce((sum, count) => sum + count, 0)).toBe(90)
    expect((await read(FINDING, `?from=${iso(Date.now() + DAY_MS)}`)).occurrences.counts).toEqual([0])
  })

  it('counts the occurrences of all findings of a list, as it counts those of each', async () => {
    const list = async (query: string) => {
      const response = await fetch(`${api.baseUrl}/v3/findings?${query}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      return findingsPageSchema.parse(await response.json())
    }
    expect((await list('limit=100')).occurrences).toBeUndefined()
    const time = `from=${iso(today - 2 * DAY_MS)}&to=${iso(today)}`
    const { findings, occurrences } = await list(`occurrences=true&${time}`)
    expect(findings.map(({ id }) => id).sort()).toEqual([FINDING, LONE])
    expect(occurrences?.bucketSeconds).toBe(3_600)
    for (const [i, { id }] of findings.entries()) {
      const { bucketSeconds, counts } = (await read(id, `?${time}`)).occurrences
      const perHour = 3_600 / bucketSeconds
      const byHour = (occurrences?.counts[i] ?? []).map((_, hour) => counts.slice(hour * perHour, (hour + 1) * perHour))
      expect(occurrences?.counts[i]).toEqual(byHour.map(some => some.reduce((sum, count) => sum + count, 0)))
    }
    const lastDay = (await list('occurrences=true')).occurrences
    expect(lastDay?.counts.map(counts => counts.length)).toEqual([25, 25])
    const month = (await list(`occurrences=true&from=${iso(today - 30 * DAY_MS)}&to=${iso(today)}`)).occurrences
    expect(month).toMatchObject({ bucketSeconds: 86_400, from: iso(today - 30 * DAY_MS) })
    expect(month?.counts[findings.findIndex(({ id }) => id === FINDING)]?.slice(-3)).toEqual([30, 30, 30])
  })

  it('counts by when occurrences happened if asked, in a finding and in a list', async () => {
    const late = `fnd_${'c'.repeat(26)}`
    const noon = today - DAY_MS + 12 * HOUR_MS
    const nano = (ms: number) => ({ occurredAtUnixNano: BigInt(ms) * 1_000_000n })
    // Sent afterwards, in one go. The clock of the last sender is a day ahead.
    const occurred = [0, 1, 2, 10].map(minutes => nano(noon + minutes * MINUTE_MS))
    const rows = [...occurred, nano(today + DAY_MS)].map(row => ({ findingId: late, traceId: traceId(9), ...row }))
    await insertExceptions(
      client,
      rows.map(row => ({ ...row, receivedAt: today })),
    )
    const time = `from=${iso(noon)}&to=${iso(noon + 15 * MINUTE_MS)}`
    expect((await read(late, `?${time}`)).occurrences.counts).toEqual([0, 0, 0])
    expect((await read(late, `?${time}&times=occurred`)).occurrences).toMatchObject({
      counts: [3, 0, 1],
      times: 'occurred',
    })
    const all = (await read(late, '?times=occurred')).occurrences
    expect(all.from).toBe(iso(noon))
    expect(all.counts.reduce((sum, count) => sum + count, 0)).toBe(5)
    expect(all.counts[0]).toBeGreaterThan(2)
    const headers = { authorization: `Bearer ${token}` }
    const url = `${api.baseUrl}/v3/findings?occurrences=true&times=occurred&from=${iso(noon - HOUR_MS)}&to=${iso(today + 1)}`
    const { findings, occurrences } = findingsPageSchema.parse(await (await fetch(url, { headers })).json())
    expect(occurrences).toMatchObject({ times: 'occurred' })
    const counts = occurrences?.counts[findings.findIndex(({ id }) => id === late)] ?? []
    expect(counts.filter(count => count > 0)).toEqual([4, 1])
  })

  it('shows the last ten occurrences with their messages shortened', async () => {
    const { lastOccurrences } = await read(FINDING)
    expect(lastOccurrences.map(({ message }) => message.split(' ')[0])).toEqual(
      [29, 28, 27, 26, 25, 24, 23, 22, 21, 20].map(String),
    )
    expect(lastOccurrences[0]).toEqual({
      occurredAt: '2026-09-21T14:13:20.000001029Z',
      receivedAt: iso(today - DAY_MS + 10 * HOUR_MS + 29 * MINUTE_MS),
      spanId: '00000000000000aa',
      serviceVersion: '1.10.0',
      message: '29 '.padEnd(500, 'é'),
    })
  })

  it('fills the list with occurrences of earlier days and leaves absent fields out', async () => {
    const at = { findingId: LONE, message: 'again', receivedAt: Date.now() }
    await insertExceptions(client, [{ ...at, traceId: traceId(7), sessionId: 'session', serviceVersion: '2' }])
    const { lastOccurrences } = await read(LONE)
    expect(lastOccurrences).toMatchObject([{ message: 'again', traceId: traceId(7), sessionId: 'session' }, {}])
    expect(Object.keys(lastOccurrences[1] ?? {})).toEqual(['occurredAt', 'receivedAt', 'spanId', 'message'])
  })

  it('returns where it was seen and in how many traces and sessions', async () => {
    expect((await read(FINDING)).seenIn).toEqual({
      surfaceIds: ['srf_1'],
      serviceNames: ['shop'],
      serviceVersions: ['1.10.0', '1.9.0'],
      approximateTraceCount: 45,
      approximateSessionCount: 10,
    })
  })

  it('names what is wrong with an invalid time', async () => {
    for (const [query, message] of [
      ['?from=now', 'from must be an RFC 3339 time, such as 2026-11-21T10:00:00Z'],
      ['?from=2026-11-21T10:00:01Z&to=2026-11-21T10:00:00Z', 'from must be before "to"'],
    ]) {
      const { status, body } = await ask(FINDING, query)
      expect({ status, body }).toMatchObject({ status: 400, body: { code: 'REQUEST_INVALID', message } })
    }
  })

  it('counts an insert once when it is repeated after a lost response', async () => {
    const { occurrenceCount, occurrences } = await read(LONE)
    const insert = () =>
      client.command({
        query: `INSERT INTO exceptions (workspace_id, received_at, finding_id, variant_id, type)
                SELECT 'ws_1', now64(3), '${LONE}', sipHash128('T'), 'T' FROM numbers(3)`,
        clickhouse_settings: {
          async_insert: 0,
          insert_deduplicate: 1,
          insert_deduplication_token: 'the same',
          deduplicate_blocks_in_dependent_materialized_views: 1,
        },
      })
    for (let time = 0; time < 3; time++) await insert()
    const after = await read(LONE)
    const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)
    expect(after.occurrenceCount).toBe(occurrenceCount + 3)
    expect(sum(after.occurrences.counts)).toBe(sum(occurrences.counts) + 3)
  })

  it('shows the stack of the last occurrence as it was sent, and the exceptions in it', async () => {
    await insertExceptions(client, [
      { findingId: CHAINED, traceId: traceId(0), receivedAt: today - DAY_MS, stacktrace: 'none' },
      { findingId: CHAINED, traceId: traceId(0), receivedAt: today - DAY_MS + 1, stacktrace: CHAIN },
    ])
    const { frames, stack } = await read(CHAINED)
    const call = { function: 'call', file: '/srv/venv/lib/python3.11/site-packages/retry/api.py', line: 33, column: 0 }
    const checkout = { function: 'checkout', file: '/srv/shop/web.py', line: 30, column: 0 }
    expect(frames).toEqual([
      { ...call, inApp: false, resolved: false, generated: call },
      { ...checkout, inApp: true, resolved: false, generated: checkout },
    ])
    expect(stack).toMatchObject({ text: CHAIN, language: 'python' })
    expect(stack?.exceptions).toMatchObject([
      { type: 'shop.CheckoutError', message: 'no price', frames: [call, checkout] },
      { relation: 'cause', type: 'KeyError', message: "'tea'", frames: [{ function: 'total', line: 9, inApp: true }] },
    ])
    expect((await read(LONE)).stack).toBeUndefined()
  })

  const iso = (ms: number) => new Date(ms).toISOString()

  async function read(findingId: string, query = '') {
    const { status, body } = await ask(findingId, query)
    expect({ status, body }).toMatchObject({ status: 200 })
    return findingAnswerSchema.parse(body).finding
  }

  async function ask(findingId: string, query = '') {
    const headers = { authorization: `Bearer ${token}` }
    const response = await fetch(`${api.baseUrl}/v3/findings/${findingId}${query}`, { headers })
    return { status: response.status, body: (await response.json()) as unknown }
  }
})
