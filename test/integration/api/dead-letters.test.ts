import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { fromBinary, fromJson, toBinary } from '@bufbuild/protobuf'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createClickHouse } from '../../../clickhouse/client.ts'
import { letterId } from '../../../letters/letter-id.ts'
import type { LetterAnswer, LettersAnswer, LettersPurged } from '../../../schemas/http/dead-letters.ts'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { QueueName } from '../../../schemas/queues/names.ts'
import type { Permission } from '../../../schemas/records/directory.ts'
import { HOUR_MS, MIB } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { MASK } from '../../../shared/scrubbing/scrubber.ts'
import { connectLetters, traceFrame } from '../../support/dead-letters.ts'
import { collect } from '../../support/oracles/collect.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/4`
const database = await createTestDatabase(services.clickhouseUrl, `letters_api_${process.pid}`)
const connection = { url: services.clickhouseUrl, user: 'default', password: '', database: database.name }
const clickhouse = createClickHouse(connection)
const letters = connectLetters(services, redisUrl, clickhouse)
const QUEUES: readonly QueueName[] = ['traces', 'exceptions', 'dead-letters', 'dead-letter-index', 'receipts']
let api: TestApi
let pools: TestPools
let surface: { workspaceId: string; surfaceId: string }
let bearer: string

beforeAll(async () => {
  const { s3 } = services
  await letters.redis.flushdb()
  api = await startApi({ ...services, redisUrl }, database.name, s3Settings(s3))
  pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
})

beforeEach(async () => {
  surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
  bearer = await memberWith()
})

afterAll(async () => {
  await pools?.stop()
  await api?.stop()
  await letters.close()
  await clickhouse.close()
  await database.drop()
})

async function memberWith(permissions?: readonly Permission[]): Promise<string> {
  const slug = surface.workspaceId.replace('_', '-')
  const userId = newId('key')
  await putWorkspace(redisUrl, { id: surface.workspaceId, slug, userId, ...(permissions && { permissions }) })
  return signToken({ org: slug, sub: userId })
}

const ask = (operation: string, body?: unknown, as = bearer) => call(api.baseUrl, operation, { bearer: as, body })
const listed = async (query = '') => ((await ask(`GET /v3/dead-letters?${query}`)).body as LettersAnswer).deadLetters
const show = async (id = '') => ((await ask(`GET /v3/dead-letters/${id}`)).body as LetterAnswer).deadLetter

const spanOf = (name: string) => ({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), name })
const exportOf = (...names: string[]) =>
  Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: names.map(spanOf) }] }] }))

async function refuse(frames: readonly PayloadFrame[], jobId = newId('key')): Promise<void> {
  await letters.refuse('traces', jobId, frames)
  await letters.untilDone(...QUEUES)
}

describe('dead letters', () => {
  it('are listed by page, by time, queue, surface, reason and state', async () => {
    const day = Date.UTC(2026, 10, 20)
    const at = (hours: number) => traceFrame(surface, exportOf('a'), { receivedAtMs: day + hours * HOUR_MS })
    await refuse([at(1), at(2), at(3), at(4)])
    const all = await listed()
    expect(all.map(({ receivedAt }) => receivedAt.slice(11, 13))).toEqual(['04', '03', '02', '01'])
    expect(all[0]).toMatchObject({ state: 'dead', queue: 'traces', reason: 'decoder_fault', replays: 0 })
    const first = (await ask('GET /v3/dead-letters?limit=3')).body as LettersAnswer
    const second = (await ask(`GET /v3/dead-letters?limit=3&cursor=${first.nextCursor}`)).body as LettersAnswer
    expect([...first.deadLetters, ...second.deadLetters]).toEqual(all)
    expect(second.nextCursor).toBeNull()
    expect(await listed('from=2026-11-20T02:00:00Z&to=2026-11-20T04:00:00Z')).toEqual(all.slice(1, 3))
    for (const query of ['queue=traces', `surface=${surface.surfaceId}`, 'reason=decoder_fault', 'state=dead'])
      expect(await listed(query)).toHaveLength(4)
    for (const query of ['queue=logs', 'surface=srf_other', 'reason=bad_compression', 'state=replayed'])
      expect(await listed(query)).toEqual([])
    expect(await ask('GET /v3/dead-letters?queue=none')).toMatchObject({ status: 400 })
  })

  it.each(['application/json', 'application/x-protobuf'] as const)(
    'have a body in %s that is scrubbed when it is read',
    async type => {
      const attributes = [
        { key: 'db.password', value: { stringValue: 'hunter2' } },
        { key: 'note', value: { stringValue: 'of zorana@example.com' } },
      ]
      const request = {
        resourceSpans: [{ scopeSpans: [{ spans: [{ ...spanOf('by zorana@example.com'), attributes }] }] }],
      }
      const isJson = type === 'application/json'
      const message = fromJson(ExportTraceServiceRequestSchema, request)
      const sent = isJson ? Buffer.from(JSON.stringify(request)) : toBinary(ExportTraceServiceRequestSchema, message)
      const body = gzipSync(sent)
      await refuse([traceFrame(surface, body, { contentType: type, contentEncoding: 'gzip' })])
      const [letter] = await listed()
      const read = async () => {
        const response = await fetch(`${api.baseUrl}/v3/dead-letters/${letter?.id}/body`, {
          headers: { authorization: `Bearer ${bearer}` },
        })
        const encoding = response.headers.get('x-letter-content-encoding')
        const scrubbed = response.headers.get('x-letter-scrubbed')
        return { bytes: Buffer.from(await response.arrayBuffer()), encoding, scrubbed }
      }
      const attributesOf = (bytes: Buffer) => {
        const shown = isJson
          ? fromJson(ExportTraceServiceRequestSchema, JSON.parse(bytes.toString()))
          : fromBinary(ExportTraceServiceRequestSchema, bytes)
        const span = shown.resourceSpans[0]?.scopeSpans[0]?.spans[0]
        return [span?.name, ...(span?.attributes ?? []).map(({ value }) => value?.value.value)]
      }
      const byDefault = await read()
      expect(byDefault).toMatchObject({ encoding: 'identity', scrubbed: '1' })
      expect(attributesOf(byDefault.bytes)).toEqual(['by zorana@example.com', MASK, 'of zorana@example.com'])
      const rules = [{ name: 'people', values: ['email'], action: 'mask' }]
      expect(await ask('PUT /v3/scrubbing', { revision: 0, rules })).toMatchObject({ status: 200 })
      const byValue = await read()
      expect(byValue.scrubbed).toBe('2')
      expect(attributesOf(byValue.bytes)).toEqual([`by ${MASK}`, 'hunter2', `of ${MASK}`])
      const { revision } = (await ask('GET /v3/scrubbing')).body as { revision: number }
      await ask('PUT /v3/scrubbing', { revision, rules: [] })
      expect(await read()).toEqual({ bytes: body, encoding: 'gzip', scrubbed: '0' })
    },
  )

  it('have a body that is scrubbed by values alone if it cannot be read', async () => {
    const rules = [{ name: 'people', values: ['email'], action: 'mask' }]
    expect(await ask('PUT /v3/scrubbing', { revision: 0, rules })).toMatchObject({ status: 200 })
    await refuse([traceFrame(surface, Buffer.from('{"a":"zorana@example.com","password":"x"'))])
    expect(await bodyOf((await listed())[0]?.id ?? '')).toBe(`{"a":"${MASK}","password":"x"`)
  })

  it('have a body that is returned as it was sent, and never rendered', async () => {
    const body = gzipSync('<script>alert(1)</script>')
    await refuse([traceFrame(surface, body, { contentEncoding: 'gzip' })])
    const [letter] = await listed()
    const response = await fetch(`${api.baseUrl}/v3/dead-letters/${letter?.id}/body`, {
      headers: { authorization: `Bearer ${bearer}` },
    })
    expect(Buffer.from(await response.arrayBuffer())).toEqual(body)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename="dead-letter.bin"',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': 'no-store',
      'x-letter-content-type': 'application/json',
      'x-letter-content-encoding': 'gzip',
    })
    expect(response.headers.get('content-encoding')).toBeNull()
    expect(await show(letter?.id)).toMatchObject({ contentEncoding: 'gzip', isReplayable: true })
  })

  it('are replayed by ids or by a filter, in steps, and show every attempt', async () => {
    await refuse([exportOf('a'), exportOf('b'), Buffer.from('{')].map(body => traceFrame(surface, body)))
    const first = await ask('POST /v3/dead-letters/replay', { filter: { reason: 'decoder_fault' }, limit: 2 })
    expect(first).toMatchObject({ status: 200, body: { replayed: 2, skipped: [], nextCursor: expect.any(String) } })
    const { nextCursor: cursor } = first.body as { nextCursor: string }
    const second = await ask('POST /v3/dead-letters/replay', { filter: { reason: 'decoder_fault' }, limit: 2, cursor })
    expect(second.body).toMatchObject({ replayed: 1, nextCursor: null })
    await letters.untilDone(...QUEUES)
    const all = await listed()
    expect(all.map(({ state, replays }) => `${state} ${replays}`).toSorted()).toEqual([
      'dead 1',
      'replayed 1',
      'replayed 1',
    ])
    const dead = all.find(({ state }) => state === 'dead')
    expect(await show(dead?.id)).toMatchObject({
      reason: 'invalid_json',
      attempts: [
        { outcome: 'dead', reason: 'decoder_fault' },
        { outcome: 'dead', reason: 'invalid_json', replayedAt: expect.any(String) },
      ],
    })
    const ids = all.map(({ id }) => id)
    const again = await ask('POST /v3/dead-letters/replay', { ids })
    expect(again.body).toMatchObject({ replayed: 1, skipped: [{ reason: 'replayed' }, { reason: 'replayed' }] })
  })

  it('are purged with their bytes, and those beside them in an object stay', async () => {
    const secrets = ['first', 'second', 'third'].map(name => traceFrame(surface, exportOf(`secret ${name}`)))
    await refuse(secrets, 'one-object')
    const all = await listed()
    const target = (await Promise.all(all.map(async ({ id }) => ({ id, text: await bodyOf(id) })))).find(({ text }) =>
      text.includes('second'),
    )
    const [object] = (await collect(letters.objects.list(`dead-letters/${surface.workspaceId}/`))).flat()
    const read = async () => (await letters.objects.get(object?.key ?? '', MIB))?.body.toString()
    expect(await read()).toContain('secret second')
    const purged = await ask('POST /v3/dead-letters/purge', { ids: [target?.id] })
    expect(purged).toMatchObject({ status: 200, body: { purged: 1, skipped: [], nextCursor: null } })
    expect(await read()).not.toContain('secret second')
    expect((await ask(`GET /v3/dead-letters/${target?.id}`)).status).toBe(404)
    expect((await ask(`GET /v3/dead-letters/${target?.id}/body`)).status).toBe(404)
    const left = await listed()
    expect(left).toHaveLength(2)
    expect((await Promise.all(left.map(({ id }) => bodyOf(id)))).join()).toMatch(
      /secret (first|third).*secret (first|third)/,
    )
    expect((await ask('POST /v3/dead-letters/replay', { ids: [target?.id] })).body).toMatchObject({
      skipped: [{ reason: 'not_found' }],
    })
    // Two at once, each of one letter: the object goes with its last letter.
    const ids = left.map(({ id }) => id)
    await Promise.all(ids.map(id => ask('POST /v3/dead-letters/purge', { ids: [id] })))
    expect(await listed()).toEqual([])
    expect((await collect(letters.objects.list(`dead-letters/${surface.workspaceId}/`))).flat()).toEqual([])
  })

  it('of a purge by filter need a condition, and those of others stay', async () => {
    await refuse([traceFrame(surface, exportOf('a'))])
    const refused = await ask('POST /v3/dead-letters/purge', { filter: {} })
    expect(refused).toMatchObject({ status: 400, body: { message: 'filter must have at least one condition' } })
    expect((await ask('POST /v3/dead-letters/replay', {})).status).toBe(400)
    const [letter] = await listed()
    const ours = surface
    surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
    const stranger = await memberWith()
    surface = ours
    for (const action of ['replay', 'purge']) {
      const answer = await ask(`POST /v3/dead-letters/${action}`, { ids: [letter?.id] }, stranger)
      expect(answer.body).toMatchObject({ skipped: [{ id: letter?.id, reason: 'not_found' }] })
    }
    expect(await listed()).toEqual([letter])
  })

  it('are selected by ids in steps that end, also if no id of a step has a letter', async () => {
    await refuse([traceFrame(surface, exportOf('a'))])
    const [letter] = await listed()
    const unknown = ['x', 'y', 'z'].map((jobId, i) =>
      letterId({ receivedAtMs: Date.now() + i + 1_000, jobId, index: 0 }),
    )
    const ids = [...unknown, letter?.id]
    for (const action of ['replay', 'purge']) {
      const skipped: string[] = []
      let cursor: string | undefined
      let steps = 0
      do {
        const answer = await ask(`POST /v3/dead-letters/${action}`, { ids, limit: 1, cursor })
        const body = answer.body as LettersPurged
        skipped.push(...body.skipped.filter(({ reason }) => reason === 'not_found').map(({ id }) => id))
        cursor = body.nextCursor ?? undefined
      } while (cursor !== undefined && ++steps < 10)
      expect(cursor).toBeUndefined()
      expect(skipped).toEqual(unknown)
      await letters.untilDone(...QUEUES)
    }
    expect(await listed()).toEqual([])
  })

  it('are replayed and purged within the share of their workspace', async () => {
    await refuse([traceFrame(surface, exportOf('a'))])
    const [mine] = await listed()
    const ours = { surface, bearer }
    surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
    const stranger = await memberWith()
    await refuse([traceFrame(surface, exportOf('b'))])
    const [theirs] = ((await ask('GET /v3/dead-letters', undefined, stranger)).body as LettersAnswer).deadLetters
    surface = ours.surface
    // The object store does not respond until the test lets it, so that all calls are in progress at once.
    const held: ServerResponse[] = []
    let isOpen = false
    const store = createServer((_, response) => {
      if (isOpen) response.writeHead(503).end()
      else held.push(response)
    })
    await once(store.listen(0, '127.0.0.1'), 'listening')
    const { s3 } = services
    const slow = await startApi({ ...services, redisUrl }, database.name, {
      S3_ENDPOINT: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
      S3_BUCKET: s3.bucket,
      AWS_ACCESS_KEY_ID: s3.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
      API_QUERY_TIMEOUT_MS: '30000',
    })
    try {
      let refused = 0
      const send = async (action: string, as: string, id = '') => {
        const answer = await call(slow.baseUrl, `POST /v3/dead-letters/${action}`, { bearer: as, body: { ids: [id] } })
        if (answer.status === 429) refused++
        return answer
      }
      const flood = Array.from({ length: 40 }, () => send('replay', ours.bearer, mine?.id))
      // One runs and half of the 64 places to wait are for one workspace.
      await until('the calls over the share are refused', () => refused === 7)
      const other = send('purge', stranger, theirs?.id)
      await until('the call of the other workspace runs', () => held.length === 2)
      isOpen = true
      for (const response of held) response.writeHead(503).end()
      const answers = await Promise.all([...flood, other])
      expect(held).toHaveLength(2)
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(7)
      expect(answers.find(({ status }) => status === 429)).toMatchObject({
        body: { code: 'INGEST_BACKPRESSURE', message: expect.stringContaining('too many replays and purges') },
      })
    } finally {
      await slow.stop()
      store.close()
    }
  })

  it('need the permission to read telemetry, and to replay or purge the one to administrate it', async () => {
    await refuse([traceFrame(surface, exportOf('a'))])
    const [letter] = await listed()
    const reader = await memberWith(['org:telemetry:read'])
    const admin = await memberWith(['org:telemetry:admin'])
    const reads = [
      'GET /v3/dead-letters',
      `GET /v3/dead-letters/${letter?.id}`,
      `GET /v3/dead-letters/${letter?.id}/body`,
    ]
    for (const read of reads) {
      expect((await ask(read, undefined, reader)).status).toBe(200)
      expect((await ask(read, undefined, admin)).status).toBe(403)
    }
    for (const action of ['replay', 'purge']) {
      const body = { filter: { reason: 'other' } }
      expect((await ask(`POST /v3/dead-letters/${action}`, body, reader)).status).toBe(403)
      expect((await ask(`POST /v3/dead-letters/${action}`, body, admin)).status).toBe(200)
    }
  })
})

async function bodyOf(id: string): Promise<string> {
  return String((await ask(`GET /v3/dead-letters/${id}/body`)).body)
}
