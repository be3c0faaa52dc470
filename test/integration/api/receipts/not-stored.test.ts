import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { Receipt } from '../../../../schemas/http/receipts.ts'
import { commitOf, indexOf } from '../../../../shared/ids/receipt.ts'
import { receiptName } from '../../../support/clients/named-receipts.ts'
import { entryOf, mapOf } from '../../../support/clients/release-client.ts'
import { lettersOf } from '../../../support/oracles/list-dead-letters.ts'
import { until } from '../../../support/until.ts'
import {
  browse,
  build,
  database,
  expectOneRowEach,
  LINE,
  objects,
  otherSurface,
  release,
  settled,
  span,
  startWorkers,
  stopWorkers,
  uploadChunk,
} from './fixture.ts'

const GZIP = { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' }

/** Waits until the dead letter of a request is kept, and returns it. */
async function letterOf({ id, objectKey = '' }: Receipt) {
  const object = await until('the request is kept', () => objects.get(objectKey, 1_000_000))
  const letter = lettersOf(object.body).find(
    ({ receipt = '' }) =>
      `${Buffer.from(commitOf(receipt), 'latin1').toString('hex')} ${indexOf(receipt)}` === receiptName(id),
  )
  if (letter === undefined) throw new Error(`${objectKey} does not contain the request`)
  return letter
}

describe('a request that cannot be stored', () => {
  it('is dead-lettered with its reason and kept under the object key of the receipt', async () => {
    const body = gzipSync(Buffer.from([0x0a, 0x04, 0x12, 0x7f, 1, 2]))
    const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' }
    const receipt = await settled(await browse('POST /drain/v1/traces', body, headers))
    expect(receipt).toMatchObject({ status: 'dead_lettered', reason: 'truncated' })
    expect(receipt.storedAt).toBeUndefined()
    expect(await letterOf(receipt)).toMatchObject({ body, reason: 'truncated' })
  })

  it('in part is stored without the records that break a rule, which its receipt counts and a dead letter keeps', async () => {
    const spans = ['whole 1', 'bad', 'whole 2', 'worse'].map(name => ({
      traceId: name === 'bad' ? '0'.repeat(32) : '1'.repeat(32),
      spanId: name === 'worse' ? 'abc' : '2'.repeat(16),
      name,
    }))
    const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] })
    const [sent, whole] = await Promise.all([
      browse('POST /drain/v1/traces', body),
      browse('POST /drain/v1/traces', span('whole 3')),
    ])
    const receipt = await settled(sent)
    const rejected = [
      { reason: 'invalid_trace_id', count: 1 },
      { reason: 'invalid_span_id', count: 1 },
    ]
    expect(receipt).toMatchObject({ status: 'stored', storedAt: expect.any(String), rejected })
    expect(await letterOf(receipt)).toMatchObject({
      body: Buffer.from(body),
      reason: 'records_rejected',
      rejected: [
        { reason: 'invalid_trace_id', count: 1, indexes: [1] },
        { reason: 'invalid_span_id', count: 1, indexes: [3] },
      ],
      storedRecords: 2,
    })
    const stored = await database.rows<{ name: string }>(
      "SELECT name FROM spans WHERE name LIKE 'whole _' ORDER BY name",
    )
    expect(stored.filter(({ name }) => name !== 'whole 3')).toEqual([{ name: 'whole 1' }, { name: 'whole 2' }])
    expect(await settled(whole)).not.toHaveProperty('rejected')
  })

  it('is dead-lettered if each of its records breaks a rule', async () => {
    const spans = [{ traceId: '0'.repeat(32), spanId: 'eee19b7ec3c1b174', name: 'lost' }]
    const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] })
    const receipt = await settled(await browse('POST /drain/v1/traces', body))
    expect(receipt).toMatchObject({
      status: 'dead_lettered',
      reason: 'records_rejected',
      rejected: [{ reason: 'invalid_trace_id', count: 1 }],
    })
    expect((await letterOf(receipt)).body.toString()).toBe(body)
  })

  it('is discarded, and only counted, once its surface has too many dead letters for one day', async () => {
    await stopWorkers()
    startWorkers({ DEAD_LETTER_MAX_COUNT_PER_DAY: '2' })
    const other = await otherSurface()
    const broken = Buffer.concat([gzipSync('{}').subarray(0, 10), Buffer.alloc(20, 0xff)])
    const bad = (key: string) => browse('POST /drain/v1/logs', broken, { ...GZIP, 'x-service-public-key': key })
    const statuses: string[] = []
    for (let i = 0; i < 4; i++) statuses.push((await settled(await bad(other.publicKey), other.credential)).status)
    expect(statuses).toEqual(['dead_lettered', 'dead_lettered', 'discarded', 'discarded'])
    const partly = JSON.stringify({
      resourceLogs: [{ scopeLogs: [{ logRecords: [{ spanId: 'ab' }, { spanId: '' }] }] }],
    })
    const sent = await browse('POST /drain/v1/logs', partly, { 'x-service-public-key': other.publicKey })
    const receipt = await settled(sent, other.credential)
    expect(receipt).toMatchObject({ status: 'stored', rejected: [{ reason: 'invalid_span_id', count: 1 }] })
    expect(receipt).not.toHaveProperty('objectKey')
    const chunk = await settled(await uploadChunk(0, '{} no JSON lines', other.publicKey), other.credential)
    expect(chunk).toMatchObject({ status: 'discarded', reason: expect.stringMatching(/^not_json_lines: /) })
    const [log] = await database.rows<{ discarded: string; kept: string }>(
      `SELECT sum(arraySum(mapValues(discarded))) AS discarded, sum(arraySum(mapValues(dead_lettered))) AS kept
       FROM ingest_log WHERE surface_id = '${other.surfaceId}'`,
    )
    expect([Number(log?.discarded), Number(log?.kept)]).toEqual([4, 2])
    await stopWorkers()
  })

  it('is found among the others of a batch that ClickHouse refuses', async () => {
    await stopWorkers()
    const names = Array.from({ length: 24 }, (_, i) => (i === 11 ? 'poison' : `good ${i}`))
    const sent = await Promise.all(names.map(name => browse('POST /drain/v1/traces', span(name))))
    const receipts = await Promise.all(sent.map(request => settled(request)))
    for (const [i, receipt] of receipts.entries()) {
      if (names[i] !== 'poison') expect(receipt).toMatchObject({ status: 'stored' })
      // The message of ClickHouse is only for operators.
      else expect(receipt).toMatchObject({ status: 'dead_lettered', reason: 'refused_by_clickhouse' })
    }
    const [stored] = await database.rows<{ n: number }>("SELECT count() AS n FROM spans WHERE name LIKE 'good %'")
    expect(Number(stored?.n)).toBe(23)
    await expectOneRowEach(sent)
  })

  it('in part is stored without the last line of a replay chunk that is truncated, which its receipt counts, also again', async () => {
    const truncated = `${LINE}{"type":3,"data":{"te`
    const rejected = [{ reason: 'truncated_line', count: 1 }]
    for (let i = 0; i < 2; i++) {
      const receipt = await settled(await uploadChunk(8, truncated))
      expect(receipt).toMatchObject({ status: 'stored', rejected })
      expect(receipt).not.toHaveProperty('objectKey')
    }
    const chunks = await database.rows("SELECT event_count FROM replay_chunks WHERE segment_id = '8'")
    expect(chunks).toEqual([{ event_count: 1 }])
    expect(await settled(await uploadChunk(9))).not.toHaveProperty('rejected')
  })

  it('is dead-lettered if it is a replay chunk that conflicts with another, but not if it repeats one', async () => {
    expect(await settled(await uploadChunk(7))).toMatchObject({ status: 'stored' })
    expect(await settled(await uploadChunk(7))).toMatchObject({ status: 'stored' })
    const conflict = await settled(await uploadChunk(7, LINE + LINE))
    expect(conflict).toMatchObject({ status: 'dead_lettered', reason: expect.stringMatching(/^replay_conflict: /) })
    expect((await letterOf(conflict)).body.toString()).toBe(LINE + LINE)
  })

  it.each([
    ['JSON of another signal', '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{}}]}]}]}'],
    ['JSON of old fields', '{"resourceSpans":[{"instrumentationLibrarySpans":[{"spans":[{}]}]}]}'],
    ['JSON without a span', '{"resource_spans":[{"scope_spans":[{"spans":[]}]}]}'],
    ['protobuf of old fields', Buffer.from([0x0a, 7, 0xc2, 0x3e, 4, 0x12, 2, 0x2a, 0])],
  ])('is dead-lettered if it has no record of its signal: %s', async (_, body) => {
    const headers = typeof body === 'string' ? {} : { 'content-type': 'application/x-protobuf' }
    const receipt = await settled(await browse('POST /drain/v1/traces', body, headers))
    expect(receipt).toMatchObject({ status: 'dead_lettered', reason: 'no_records' })
    expect((await letterOf(receipt)).body).toEqual(Buffer.from(body))
  })

  it('is stored without the records that have a JSON value which does not fit', async () => {
    const ids = { traceId: 'a1'.repeat(16), spanId: 'eee19b7ec3c1b174' }
    const attributes = '[{"key":"big","value":{"intValue":100000000000000000000}}]'
    const good = JSON.stringify({ ...ids, name: 'fits' }).replace('{', `{"attributes":${attributes},`)
    const body = `{"resourceSpans":[{"scopeSpans":[{"spans":[7,${good},null]}],"resource":[]}]}`
    const receipt = await settled(await browse('POST /drain/v1/traces', body))
    const rejected = [
      { reason: 'invalid_json_value', count: 2 },
      { reason: 'json_value_left_out', count: 1 },
    ]
    expect(receipt).toMatchObject({ status: 'stored', rejected: expect.arrayContaining(rejected) })
    expect(await letterOf(receipt)).toMatchObject({
      rejected: expect.arrayContaining([{ reason: 'invalid_json_value', count: 2, indexes: [0, 2] }]),
      storedRecords: 1,
    })
    expect(await database.rows("SELECT attribute_values AS a FROM spans WHERE name = 'fits'")).toEqual([
      { a: '100000000000000000000' },
    ])
  })

  it('has the receipt "refused" if its response refused it, and nothing is kept', async () => {
    startWorkers()
    const maps = `/v3/releases/${release}/source-maps`
    const noMap = await build(`PUT ${maps}/upload?path=c.map`, '{"version":2}')
    const files = [entryOf({ path: 'never sent', bytes: mapOf('x') })]
    const incomplete = await build(`POST ${maps}/complete`, JSON.stringify({ files, sourceFileCount: 1 }))
    for (const answer of [noMap, incomplete]) {
      expect(answer.status).toBe(400)
      const { message } = answer.body as { message: string }
      const receipt = await settled(answer)
      expect(receipt).toMatchObject({ status: 'refused', reason: `REQUEST_INVALID: ${message}` })
      expect(receipt.objectKey).toBeUndefined()
    }
  })
})
