import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { pack, unpack } from '@rrweb/packer'
import { EventType, type eventWithTime } from '@rrweb/types'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startS3 } from '../../../deploy/local/stores/s3.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { generateKey } from '../../../shared/ids/credentials.ts'
import { replayKey } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { decodePayload } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { encodeReplayMetadata } from '../../support/clients/encode-replay-metadata.ts'
import { listDeadLetters } from '../../support/oracles/list-dead-letters.ts'
import { listObjects } from '../../support/oracles/list-objects.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`
const QUEUES = ['replay', 'replay-chunks', 'dead-letters', 'dead-letter-index'] as const
const START = 1_700_000_000_000
/** Unique for this run, because other tests use the same object store. */
const surfaceId = `srf_${randomBytes(6).toString('hex')}`

let redis: Redis
let edge: TestEdge
let pools: TestPools
let database: TestDatabase
let objects: ObjectStore
let publicKey: string
let sessions = 0

beforeAll(async () => {
  redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
  await redis.flushdb()
  publicKey = await issueKey(createDirectory(redis), { surfaceId })
  database = await createTestDatabase(services.clickhouseUrl, `replay_${process.pid}`)
  objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
  edge = await startEdge(redisUrl)
  pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
})

afterAll(async () => {
  await pools?.stop()
  await edge?.stop()
  objects?.close()
  await database?.drop()
  redis?.disconnect()
})

const sha256Of = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const newSession = () => `session-${process.pid}-${++sessions}`
const keyOf = (sessionId: string, windowId: string, segmentId: string) =>
  replayKey({ workspaceId: 'ws_1', surfaceId, sessionId, windowId, segmentId })

function lines(count: number, fill = 'x'): Buffer {
  const events = Array.from({ length: count }, (_, i) => ({
    type: i === 0 ? 2 : 3,
    timestamp: START + i,
    data: { text: `${fill} ${i}` },
  }))
  return Buffer.from(`${events.map(event => JSON.stringify(event)).join('\n')}\n`)
}

function metadata(fields: object = {}): Record<string, string> {
  const said = { windowId: 'w', segmentId: 0, firstTs: START, lastTs: START + 99, ...fields }
  return { 'x-replay-metadata': encodeReplayMetadata(said) }
}

async function upload(sessionId: string, body: Uint8Array, headers: Record<string, string>, query = '') {
  const response = await fetch(`${edge.baseUrl}/v3/replay/upload/${encodeURIComponent(sessionId)}${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream', 'x-service-public-key': publicKey, ...headers },
    body: new Uint8Array(body),
  })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}

async function backlog(): Promise<number> {
  const flows = await Promise.all(QUEUES.map(queue => redis.hgetall(queueKeys(queue).flow)))
  return flows.reduce((sum, flow) => sum + Number(flow.acceptedPayloads ?? 0) - Number(flow.donePayloads ?? 0), 0)
}

/** Waits until everything is stored or dead-lettered and Redis contains nothing of it. */
async function allDone(): Promise<void> {
  await until('the queues are empty', async () => (await backlog()) === 0, { deadlineMs: 40_000 })
  for (const queue of QUEUES) {
    const keys = queueKeys(queue)
    expect(await redis.keys(`${keys.payloadPrefix}*`)).toEqual([])
    const flow = await redis.hgetall(keys.flow)
    expect(flow.doneBytes).toBe(flow.acceptedBytes)
  }
}

const rowsOf = (sessionId: string) =>
  database.rows<Record<string, unknown>>(
    `SELECT * EXCEPT (received_at, sha256, sent_sha256), lower(hex(sha256)) AS sha256, lower(hex(sent_sha256)) AS sent_sha256
     FROM replay_chunks
     WHERE session_id = '${sessionId}' ORDER BY window_id, segment_id`,
  )

async function deadLetters() {
  const kept = await listDeadLetters(services.s3, `dead-letters/ws_1/${surfaceId}/replay/`)
  return kept.map(({ body: bytes, reason }) => ({ bytes, reason }))
}

async function inflated(key: string): Promise<Buffer> {
  const object = await objects.get(key, 20 * MIB)
  if (!object) throw new Error(`there is no ${key}`)
  expect(object.contentType).toBe('application/gzip')
  return gunzipSync(object.body)
}

describe('a chunk', () => {
  it('is answered with its key, stored unchanged if it is gzip, and indexed', async () => {
    const sessionId = newSession()
    const text = lines(100)
    const body = gzipSync(text)
    const said = metadata({ segmentId: 7, eventCount: 5, hasFullSnapshot: false, activityCount: 3 })
    const answer = await upload(sessionId, body, { ...said, 'content-encoding': 'gzip' })
    const objectKey = keyOf(sessionId, 'w', '7')
    expect(answer).toMatchObject({ status: 200, body: { objectKey } })
    await allDone()
    const object = await objects.get(objectKey, MIB)
    expect(object?.body.equals(body)).toBe(true)
    expect(object).toMatchObject({ contentType: 'application/gzip' })
    expect(object?.metadata).toEqual({
      'window-id': 'w',
      'segment-id': '7',
      'first-ts': String(START),
      'last-ts': String(START + 99),
      'event-count': '5',
      'has-full-snapshot': 'false',
      'activity-count': '3',
      'received-at': expect.stringMatching(/^\d{4}-.*Z$/),
      payload: expect.stringMatching(/^[0-9a-f-]{36}-\d+$/),
      sha256: sha256Of(text),
      'sent-sha256': sha256Of(body),
      'decompressed-bytes': String(text.length),
    })
    expect(await rowsOf(sessionId)).toEqual([
      {
        workspace_id: 'ws_1',
        surface_id: surfaceId,
        session_id: sessionId,
        window_id: 'w',
        segment_id: '7',
        segment_number: 7,
        first_ts_ms: START,
        last_ts_ms: START + 99,
        activity_count: 3,
        event_count: 100,
        has_full_snapshot: true,
        first_event_ms: START,
        last_event_ms: START + 99,
        stored_bytes: body.length,
        decompressed_bytes: text.length,
        sha256: sha256Of(text),
        sent_sha256: sha256Of(body),
        object_key: objectKey,
      },
    ])
  })

  it('is compressed if it was sent plain, and may be sent as gzip without content-encoding', async () => {
    const sessionId = newSession()
    const text = lines(50)
    await upload(sessionId, text, metadata({ segmentId: 'a/b' }))
    await upload(sessionId, gzipSync(text), metadata({ segmentId: 1 }))
    await allDone()
    expect(await inflated(keyOf(sessionId, 'w', 'a/b'))).toEqual(text)
    expect(await inflated(keyOf(sessionId, 'w', '1'))).toEqual(text)
    const rows = await rowsOf(sessionId)
    expect(rows.map(row => [row.segment_id, row.segment_number, row.event_count])).toEqual([
      ['1', 1, 50],
      ['a/b', -1, 50],
    ])
  })

  it('may be sent by a beacon with key and metadata in the query', async () => {
    const sessionId = newSession()
    const query = new URLSearchParams({ public_key: publicKey, metadata: metadata()['x-replay-metadata'] as string })
    const answer = await upload(
      sessionId,
      lines(3),
      { 'x-service-public-key': '', 'content-type': 'text/plain' },
      `?${query}`,
    )
    expect(answer.body).toEqual({ objectKey: keyOf(sessionId, 'w', '0') })
    await allDone()
    expect(await rowsOf(sessionId)).toHaveLength(1)
  })

  it('is found under its key, whatever its names are', async () => {
    const sessionId = 'söme/../session %2F 😀'
    for (const windowId of ['', '..', 'w'.repeat(900), '\u0000\n', '😀']) {
      const answer = await upload(sessionId, lines(2, windowId.slice(0, 3)), metadata({ windowId, segmentId: '..' }))
      expect(answer.body).toEqual({ objectKey: keyOf(sessionId, windowId, '..') })
      await allDone()
      expect((await inflated(keyOf(sessionId, windowId, '..'))).length).toBeGreaterThan(50)
    }
    expect(await rowsOf(sessionId)).toHaveLength(5)
  })

  it('of 10 MiB is stored', async () => {
    const sessionId = newSession()
    const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.alloc(10 * MIB - 8, 'r'), Buffer.from('"}')])
    expect((await upload(sessionId, body, metadata())).status).toBe(200)
    await allDone()
    expect((await inflated(keyOf(sessionId, 'w', '0'))).equals(body)).toBe(true)
    // Its only event has no time, so the time of the upload counts.
    expect(await rowsOf(sessionId)).toMatchObject([{ first_event_ms: START, last_event_ms: START + 99 }])
  })
})

describe('a chunk as browsers send it', () => {
  const event = (i: number): eventWithTime => ({
    type: EventType.Custom,
    timestamp: START + i,
    data: { tag: 'ü 😀', payload: `${i}\n`.repeat(50) },
  })
  const packed = (count: number) =>
    Array.from({ length: count }, (_, i) => `${JSON.stringify(pack(event(i)))}\n`).join('')

  it.each<[string, Buffer]>([
    ['packed', Buffer.from(packed(30))],
    ['packed and gzipped', gzipSync(packed(30))],
    ['packed, with a truncated last line', Buffer.from(packed(31).slice(0, -20))],
    ['packed in part', Buffer.from(`${packed(29)}${JSON.stringify({ ...event(29), v: 'v1' })}`)],
  ])('%s is stored as its events', async (_name, body) => {
    const sessionId = newSession()
    expect((await upload(sessionId, body, metadata())).body.objectKey).toBe(keyOf(sessionId, 'w', '0'))
    await allDone()
    const stored = (await inflated(keyOf(sessionId, 'w', '0'))).toString().trim().split('\n')
    expect(stored.map(line => unpack(JSON.parse(line)))).toEqual(
      Array.from({ length: 30 }, (_, i) => ({ ...event(i), v: 'v1' })),
    )
    const times = { first_event_ms: START, last_event_ms: START + 29 }
    expect(await rowsOf(sessionId)).toMatchObject([{ event_count: 30, sent_sha256: sha256Of(body), ...times }])
    // The same bytes again are the same chunk.
    await upload(sessionId, body, metadata())
    await allDone()
    expect(await rowsOf(sessionId)).toHaveLength(1)
    expect((await deadLetters()).filter(letter => letter.bytes.equals(body))).toEqual([])
  })

  it('keeps its key whatever its metadata look like', async () => {
    const sessionId = newSession()
    const said = { windowId: 5, segmentId: '3', firstTs: `${START}`, lastTs: `${START + 9}`, title: 'Größe' }
    const encoded = btoa(JSON.stringify(said))
    const answer = await upload(sessionId, lines(3), {
      'x-replay-metadata': `${encoded.slice(0, 9)} ${encoded.slice(9)}`,
    })
    expect(answer.body).toEqual({ objectKey: keyOf(sessionId, '5', '3') })
    await allDone()
    expect(await rowsOf(sessionId)).toMatchObject([{ window_id: '5', segment_number: 3, first_ts_ms: START }])
  })
})

describe('the same chunk again', () => {
  it('sent five times at once, gives one object and one row', async () => {
    const sessionId = newSession()
    const body = gzipSync(lines(200))
    const answers = await Promise.all(Array.from({ length: 5 }, () => upload(sessionId, body, metadata())))
    expect(new Set(answers.map(answer => answer.body.objectKey))).toEqual(new Set([keyOf(sessionId, 'w', '0')]))
    await allDone()
    // The same events in different gzip bytes are the same chunk.
    await upload(sessionId, lines(200), metadata())
    await allDone()
    expect(await rowsOf(sessionId)).toHaveLength(1)
    expect((await objects.get(keyOf(sessionId, 'w', '0'), MIB))?.body.equals(body)).toBe(true)
  })

  it('with different bytes, leaves the first in place and is kept as a dead letter', async () => {
    const sessionId = newSession()
    const [first, second] = [lines(10, 'first'), lines(10, 'second')]
    await upload(sessionId, first, metadata())
    await allDone()
    expect((await upload(sessionId, second, metadata())).status).toBe(200)
    await allDone()
    expect(await inflated(keyOf(sessionId, 'w', '0'))).toEqual(first)
    expect(await rowsOf(sessionId)).toHaveLength(1)
    const conflicts = (await deadLetters()).filter(letter => letter.bytes.equals(second))
    expect(conflicts).toMatchObject([{ reason: expect.stringMatching(/^replay_conflict: /) }])
    expect(await pools.metrics()).toMatch(/penstock_replay_chunks_total\{outcome="replay_conflict"[^}]*\} 1/)
  })
})

describe('a chunk that cannot be played becomes a dead letter as it was sent, and other chunks do not', () => {
  const whole = gzipSync(lines(100))
  const bomb = gzipSync(Buffer.alloc(101 * MIB, `{"a":"${'a'.repeat(10 * MIB)}"}\n`))
  it.each([
    ['text behind an event', Buffer.from('{} hello'), /^not_json_lines: line 1 is not a JSON object$/],
    ['an array', Buffer.from('{}\n[]'), /^not_json_lines: line 2 /],
    ['one line cut short', Buffer.from('{"a":'), /^not_json_lines: line 1 /],
    ['a line cut short before the last one', Buffer.from('{"a":\n{}'), /^not_json_lines: line 1 /],
    ['a text that is not packed', Buffer.from('{}\n"hello"'), /^not_json_lines: line 2 /],
    ['gzip cut short', whole.subarray(0, -20), /^bad_compression: /],
    ['a bomb', bomb, /^too_large_decompressed$/],
    ['a line of 17 MiB', gzipSync(`{"a":"${'a'.repeat(17 * MIB)}"}`), /^line_too_long$/],
    ['a million events', gzipSync('{}\n'.repeat(1_000_000)), /^too_many_events$/],
    ['blank lines', Buffer.from('\n\n'), /^no_events$/],
  ])('%s', async (_name, body, reason) => {
    const sessionId = newSession()
    const answers = await Promise.all([
      upload(sessionId, body, metadata({ windowId: 'bad' })),
      upload(sessionId, whole, metadata({ windowId: 'good' })),
    ])
    expect(answers.map(answer => answer.status)).toEqual([200, 200])
    await allDone()
    expect((await rowsOf(sessionId)).map(row => row.window_id)).toEqual(['good'])
    expect(await objects.head(keyOf(sessionId, 'bad', '0'))).toBeUndefined()
    const letters = (await deadLetters()).filter(letter => letter.bytes.equals(body))
    expect(letters).toMatchObject([{ reason: expect.stringMatching(reason) }])
  })
})

describe('without usable metadata', () => {
  it.each([
    ['absent', {}],
    ['not_base64', { 'x-replay-metadata': '{}' }],
    ['not_json_object', { 'x-replay-metadata': encodeReplayMetadata([]) }],
    ['invalid_fields', metadata({ firstTs: START + 100 })],
  ] as [string, Record<string, string>][])('%s: acknowledged without a key, and not kept', async (_reason, headers) => {
    const before = await redis.hget(queueKeys('replay').flow, 'acceptedPayloads')
    expect(await upload(newSession(), lines(1), headers)).toMatchObject({ status: 200, body: { objectKey: '' } })
    expect(await redis.hget(queueKeys('replay').flow, 'acceptedPayloads')).toBe(before)
  })
})

describe('a chunk is refused at once with', () => {
  const rejected = (status: number, message: RegExp) => ({
    status,
    body: { code: 'REPLAY_UPLOAD_REJECTED', message: expect.stringMatching(message), service: 'frontier-runtime' },
  })

  it('an empty body', async () => {
    expect(await upload('s', Buffer.alloc(0), metadata())).toMatchObject(rejected(400, /empty/))
  })
  it('a body that is declared as gzip and is not', async () => {
    const answer = await upload('s', lines(1), { ...metadata(), 'content-encoding': 'gzip' })
    expect(answer).toMatchObject(rejected(400, /content-encoding is gzip/))
  })
  it.each([
    ['a text', Buffer.from('hello'), /first character must be/],
    ['an array in gzip', gzipSync('[{}]'), /first character must be/],
    ['damaged gzip', Buffer.concat([gzipSync('{}').subarray(0, 10), Buffer.alloc(20, 0xff)]), /the gzip is damaged/],
  ])('what cannot begin an event: %s', async (_name, body, message) => {
    const before = await redis.hget(queueKeys('replay').flow, 'acceptedPayloads')
    expect(await upload('s', body, metadata())).toMatchObject(rejected(400, message))
    expect(await redis.hget(queueKeys('replay').flow, 'acceptedPayloads')).toBe(before)
  })
  it('another encoding', async () => {
    const answer = await upload('s', lines(1), { ...metadata(), 'content-encoding': 'br' })
    expect(answer).toMatchObject({ status: 415, body: { code: 'REQUEST_INVALID', service: 'frontier-runtime' } })
  })
  it.each(['x'.repeat(1_025), 'a\nb', '\u0000', '\u0085'])('the session id %j', async sessionId => {
    expect(await upload(sessionId, lines(1), metadata())).toMatchObject(rejected(400, /^sessionId must have/))
  })
  it('a session id with invalid percent-encoding', async () => {
    const response = await fetch(`${edge.baseUrl}/v3/replay/upload/%E0%A4%A`, {
      method: 'POST',
      headers: { 'x-service-public-key': publicKey, ...metadata() },
      body: '{}',
    })
    expect({ status: response.status, body: await response.json() }).toMatchObject(rejected(400, /percent-encoding/))
    const without = await fetch(`${edge.baseUrl}/v3/replay/upload/%E0%A4%A`, { method: 'POST', body: '{}' })
    expect([without.status, await without.json()]).toMatchObject([401, { code: 'AUTH_MISSING' }])
  })
  it('more than 10 MiB', async () => {
    expect(await upload('s', Buffer.alloc(10 * MIB + 1, 32), metadata())).toMatchObject(rejected(413, /10 MiB/))
  })
  it('no key or a wrong one, whatever else is wrong', async () => {
    const none = await upload('x'.repeat(201), Buffer.alloc(0), { 'x-service-public-key': '' })
    expect(none).toMatchObject({ status: 401, body: { code: 'AUTH_MISSING' } })
    const wrong = await upload('s', Buffer.alloc(0), { 'x-service-public-key': generateKey('public') })
    expect(wrong).toMatchObject({ status: 401, body: { code: 'AUTH_PK_INVALID' } })
  })
})

it('lets a page of any origin upload with its headers', async () => {
  const preflight = await fetch(`${edge.baseUrl}/v3/replay/upload/s`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://shop.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-encoding,x-replay-metadata,x-service-public-key',
    },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('access-control-allow-origin')).toBe('https://shop.example')
  expect(preflight.headers.get('access-control-allow-headers')).toMatch(/x-replay-metadata.*content-encoding/)
})

it('chunks that arrive while the object store is unavailable or killed are stored once and whole', async () => {
  await pools.stop()
  const dir = await mkdtemp(join(tmpdir(), 'penstock-replay-'))
  const access = { region: 'us-east-1', bucket: 'penstock', accessKeyId: 'test-access', secretAccessKey: 'test-secret' }
  const options = { dir, port: await freePort(), log: () => {}, ...access }
  let server = await startS3(options)
  const s3 = { ...access, endpoint: server.url }
  const own = startPools(QUEUES, { ...services, redisUrl, s3 }, database.name)
  const sessionId = newSession()
  const bodies = Array.from({ length: 60 }, (_, i) => gzipSync(lines(500, `chunk ${i}`)))
  const send = async (from: number, to: number) => {
    for (const [i, body] of [...bodies.entries()].slice(from, to)) {
      expect((await upload(sessionId, body, metadata({ segmentId: i }))).status).toBe(200)
    }
  }
  try {
    const sending = send(0, 20)
    await until('the first chunk is stored', async () => (await rowsOf(sessionId)).length > 0)
    await server.kill9()
    await sending
    await send(20, 60)
    expect(await backlog()).toBeGreaterThan(0)
    server = await startS3(options)
    await allDone()
    const rows = await rowsOf(sessionId)
    expect(rows.map(row => Number(row.segment_number)).sort((a, b) => a - b)).toEqual(bodies.map((_, i) => i))
    const stored = await listObjects(s3, `replays/ws_1/${surfaceId}/`)
    const sent = bodies.map((body, i) => [keyOf(sessionId, 'w', String(i)), body.toString('hex')])
    expect(stored.map(object => [object.key, object.bytes.toString('hex')]).sort()).toEqual(sent.sort())
  } finally {
    await own.stop()
    await server.stop()
    await rm(dir, { recursive: true, force: true })
    pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
  }
})

it('a job that dies between its objects and its index finds its own objects in the next attempt', async () => {
  await pools.stop()
  const sessionId = newSession()
  await upload(sessionId, lines(4), metadata())
  const keys = queueKeys('replay')
  const [payloadKey] = await redis.keys(`${keys.payloadPrefix}*`)
  const jobId = payloadKey?.slice(keys.payloadPrefix.length)
  const payload = await redis.getBuffer(payloadKey as string)
  expect(decodePayload(payload as Buffer)).toHaveLength(1)
  await objects.put(keyOf(sessionId, 'w', '0'), gzipSync(lines(4)), {
    contentType: 'application/gzip',
    metadata: { payload: `${jobId}-0`, sha256: sha256Of(lines(4)) },
  })
  pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
  await allDone()
  expect(await rowsOf(sessionId)).toHaveLength(1)
})
