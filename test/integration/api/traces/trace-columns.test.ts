import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type TraceColumns, traceColumnsSchema } from '../../../../schemas/http/traces/schemas.ts'
import { DAY_MS, MIB } from '../../../../schemas/units.ts'
import { insertSpans, START, signToken } from '../../../support/services/api.ts'
import { api, child, client, id, nextTraceId, span, store } from './fixture.ts'

const token = await signToken()

async function ask(traceId: string, bearer = token) {
  const response = await fetch(`${api.baseUrl}/v3/traces/${traceId}`, {
    headers: { authorization: `Bearer ${bearer}` },
  })
  return { status: response.status, body: (await response.json()) as unknown }
}

async function read(traceId: string): Promise<TraceColumns> {
  const { status, body } = await ask(traceId)
  expect({ status, body }).toMatchObject({ status: 200 })
  return traceColumnsSchema.parse(body)
}

describe('GET /v3/traces/{traceId}', () => {
  it('shows each span once with an entry in every column, in the order of the starts', async () => {
    const traceId = await store([
      { ...span(1), name: 'root', serviceName: 'web', kind: 2, endTimeUnixNano: START + 5_000n },
      { ...child(2, 1, 100), name: 'query', serviceName: 'api', kind: 3, statusCode: 2, endTimeUnixNano: START + 300n },
      { ...child(3, 1, 100), name: 'query', serviceName: 'web', endTimeUnixNano: START + 50n },
      { ...child(4, 9, 250), name: 'späte Ä\n"', serviceName: 'api' },
    ])
    expect(await read(traceId)).toEqual({
      traceId,
      spanCount: 4,
      rootCount: 1,
      danglingParentCount: 1,
      startedAtUnixNano: String(START),
      endedAtUnixNano: String(START + 1_000_000n),
      wallDurationMs: 1,
      truncated: false,
      names: ['root', 'query', 'späte Ä\n"'],
      services: ['web', 'api'],
      repeated: { spans: [], counts: [] },
      completeness: { state: 'incomplete', settledBefore: expect.any(String), reasons: ['unknown'], losses: [] },
      missingParents: [{ spanId: id(9), firstChild: 3, childCount: 1, cause: 'unknown' }],
      spans: {
        ids: [1, 2, 3, 4].map(id).join(''),
        startDeltaNanos: [0, 100, 0, 150],
        durationNanos: [5_000, 200, -50, 1_000_000 - 250],
        parents: [-1, 0, 0, -2],
        names: [0, 1, 1, 2],
        services: [0, 1, 0, 1],
        kinds: [2, 3, 1, 1],
        statuses: [0, 2, 0, 0],
        flags: [0, 0, 0, 0],
      },
    })
  })

  it('shows of a span that was received several times the row that was received first, and how often', async () => {
    const now = Date.now()
    const traceId = await store([
      { ...span(1), name: 'later', receivedAt: now, serviceName: 'b' },
      { ...span(1), name: 'first', receivedAt: now - DAY_MS, serviceName: 'a' },
      { ...child(2, 1, 5), name: 'child' },
    ])
    const { names, services, spans, repeated } = await read(traceId)
    expect(spans.names.map(name => names[name])).toEqual(['first', 'child'])
    expect(services[spans.services[0] as number]).toBe('a')
    expect(repeated).toEqual({ spans: [0], counts: [2] })
  })

  it('shows how many spans name a missing parent, and whether it is of another service', async () => {
    const traceId = await store([span(1), child(2, 77, 1), child(3, 77, 2), child(4, 78, 3), child(5, 79, 4)])
    const flags = { [id(2)]: 0x301, [id(4)]: 0x101, [id(5)]: 0x1 }
    for (const [spanId, value] of Object.entries(flags)) {
      await client.command({
        query: `ALTER TABLE spans UPDATE flags = ${value} WHERE trace_id = unhex('${traceId}') AND span_id = unhex('${spanId}')`,
        clickhouse_settings: { mutations_sync: '2' },
      })
    }
    const { missingParents, danglingParentCount, spans } = await read(traceId)
    expect(danglingParentCount).toBe(4)
    expect(missingParents).toEqual([
      { spanId: id(77), firstChild: 1, childCount: 2, isRemote: true, cause: 'not_received_from_other_service' },
      { spanId: id(78), firstChild: 3, childCount: 1, isRemote: false, cause: 'not_received_from_this_service' },
      { spanId: id(79), firstChild: 4, childCount: 1, cause: 'unknown' },
    ])
    expect(spans.flags).toEqual([0, 0x301, 0, 0x101, 0x1])
  })

  it('is compressed only for clients that accept gzip', async () => {
    const traceId = await store([span(1)])
    const url = `${api.baseUrl}/v3/traces/${traceId}`
    const authorization = `Bearer ${token}`
    const plain = await fetch(url, { headers: { authorization, 'accept-encoding': 'identity' } })
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(plain.headers.get('vary')).toBe('accept-encoding')
    // `fetch` decompresses what it receives.
    const packed = await new Promise<IncomingMessage>((resolve, reject) => {
      get(url, { headers: { authorization, 'accept-encoding': 'br, gzip' } }, resolve).on('error', reject)
    })
    expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' })
    const unpacked = traceColumnsSchema.parse(JSON.parse(gunzipSync(await buffer(packed)).toString()))
    // The watermark of each read is its own.
    expect({ ...unpacked, completeness: {} }).toEqual({ ...((await plain.json()) as TraceColumns), completeness: {} })
  })

  it('is cut at 256 characters of a name, which the details have whole', async () => {
    const name = 'ß'.repeat(300)
    const traceId = await store([{ ...span(1), name }])
    expect((await read(traceId)).names).toEqual(['ß'.repeat(256)])
  })

  it('keeps no more than 4 MiB of distinct names', async () => {
    const traceId = nextTraceId()
    await client.command({
      query: `INSERT INTO spans (workspace_id, received_at, trace_id, span_id, name, service_name, start_time_unix_nano, end_time_unix_nano)
              SELECT 'ws_1', now64(3), unhex('${traceId}'), reverse(reinterpretAsFixedString(number)),
                concat(toString(number), repeat('x', 300)), 'shop', ${START} + number, ${START} + number
              FROM numbers(1, 20000)`,
    })
    const { names, spans, spanCount } = await read(traceId)
    expect(spanCount).toBe(20_000)
    expect(Buffer.byteLength(names.join(''))).toBeLessThanOrEqual(4 * MIB)
    expect(spans.names.slice(0, names.length)).toEqual(names.map((_, i) => i))
    expect(new Set(spans.names.slice(names.length))).toEqual(new Set([-1]))
  })

  it('includes the spans of every day and surface, and none of another workspace', async () => {
    const now = Date.now()
    const traceId = await store([{ ...span(1), surfaceId: 'srf_web', receivedAt: now - 2 * DAY_MS }, child(2, 1, 1)])
    await insertSpans(client, [{ traceId, ...span(3), workspaceId: 'ws_2' }])
    expect((await read(traceId)).spans.ids).toBe(id(1) + id(2))
    const theirs = await signToken({ org: 'globex', sub: 'user_2' })
    expect((await ask(traceId, theirs)).body).toMatchObject({ spanCount: 1, spans: { ids: id(3) } })
  })

  it('is not found by an unknown or malformed id', async () => {
    const unknown = await ask('f'.repeat(32))
    expect(unknown).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    for (const traceId of ['F'.repeat(32), 'f'.repeat(31), '%zz', 'x']) {
      expect((await ask(traceId)).body).toEqual(unknown.body)
    }
  })
})
