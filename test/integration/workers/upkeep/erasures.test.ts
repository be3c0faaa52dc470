import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { openDeliveryQueue } from '../../../../alerts/calling/delivery-queue.ts'
import { holdEvents } from '../../../../alerts/calling/held-events.ts'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { ERASED_TABLES } from '../../../../clickhouse/queries/sessions/session-key.ts'
import { LetterClaims } from '../../../../letters/letter-claims.ts'
import type { FindingEvent } from '../../../../schemas/http/alerts/events.ts'
import { EXAMPLE_EVENTS } from '../../../../schemas/http/alerts/example-events.ts'
import type { ErasureAnswer, ShownErasure } from '../../../../schemas/http/privacy/erasures.ts'
import { QUEUES } from '../../../../schemas/queues/names.ts'
import { STAYING_KINDS, TABLE_CONTENTS } from '../../../../schemas/records/erased-places.ts'
import type { Erasure } from '../../../../schemas/records/erasure.ts'
import { createDirectory, type Directory, newId } from '../../../../shared/directory/directory.ts'
import { eraseComments } from '../../../../shared/directory/findings/erase-comments.ts'
import type { Naming } from '../../../../shared/directory/findings/mentions.ts'
import { upkeepKeys } from '../../../../shared/directory/record.ts'
import { commitIf } from '../../../../shared/directory/transaction.ts'
import { INSTALLATION_KEY } from '../../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import { encodeLetters } from '../../../../shared/queue/letters/letter-object.ts'
import { queueKeys } from '../../../../shared/queue/queue.ts'
import { redisTimeMs, settledBeforeMs } from '../../../../shared/queue/watermark.ts'
import { createMetrics } from '../../../../shared/runtime/metrics.ts'
import { erasePerson } from '../../../../workers/upkeep/erase-person.ts'
import { startUpkeep } from '../../../../workers/upkeep/start-upkeep.ts'
import { createUpkeepMetrics } from '../../../../workers/upkeep/upkeep-metrics.ts'
import { exampleDelivery } from '../../../support/alerts/example-deliveries.ts'
import { encodeReplayMetadata } from '../../../support/clients/encode-replay-metadata.ts'
import { runDirectoryCli } from '../../../support/clients/run-cli.ts'
import { clusterSettings, connectDatabase } from '../../../support/cluster/connect.ts'
import { contentsOf } from '../../../support/oracles/contents-of.ts'
import { listObjects } from '../../../support/oracles/list-objects.ts'
import { onOneServer } from '../../../support/queue-on.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../../support/services/edge.ts'
import { startPools, type TestPools } from '../../../support/services/pools.ts'
import { s3Settings } from '../../../support/services/services.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/services/test-database.ts'
import { until } from '../../../support/until.ts'
import { at, insertRows, ownerColumns, storeChunk } from '../../../support/workspaces/session-rows.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/6`
const WORKER = fileURLToPath(new URL('../../../../workers/main.ts', import.meta.url))
const workspaceId = newId('ws')
const slug = `erased-${workspaceId.slice(-8)}`
const surfaceId = newId('srf')
const PERSON = 'user-4711@example.test'
const OTHER = 'user-4712@example.test'

let redis: Redis
let database: TestDatabase
let client: ClickHouseClient
let edge: TestEdge
let api: TestApi
let pools: TestPools | undefined
let upkeep: { stop(): Promise<void> } | undefined
let publicKey: string
const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
const objectStore = s3Settings(services.s3)

beforeAll(async () => {
  redis = new Redis(redisUrl)
  await redis.flushdb()
  await putWorkspace(redisUrl, { id: workspaceId, slug })
  // Its worker is one of another installation than that of the test before.
  await objects.deleteMany([INSTALLATION_KEY])
  database = await createTestDatabase(services.clickhouseUrl, `erasures_${process.pid}`)
  client = connectDatabase(services.clickhouseUrl, database.name)
  edge = await startEdge(redisUrl, objectStore)
  api = await startApi({ ...services, redisUrl }, database.name, objectStore)
  publicKey = await issueKey(createDirectory(redis), { workspaceId, surfaceId })
})
afterEach(async () => {
  await stopPools()
  await upkeep?.stop()
  upkeep = undefined
})
afterAll(async () => {
  await api?.stop()
  await edge?.stop()
  await client?.close()
  await database?.drop()
  objects.close()
  redis?.disconnect()
})

const runPools = () => {
  pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
}
const runUpkeep = () => {
  upkeep = startUpkeep({
    queues: onOneServer(redis),
    directoryRedis: redis,
    clickhouse: client,
    objects,
    retentionDays: 30,
    deliveryQueue: openDeliveryQueue(redis),
    logger: pino({ level: process.env.TEST_LOG ?? 'silent' }),
    metrics: createUpkeepMetrics(createMetrics('test')),
  })
}
async function stopPools(): Promise<void> {
  await pools?.stop()
  pools = undefined
}

/** Sends one request of every kind that names a session. */
async function send(sessionId: string, identifier: string | undefined, segmentId: number): Promise<void> {
  const key = { 'x-service-public-key': publicKey }
  const ok = async (path: string, body: unknown, headers: Record<string, string> = {}) =>
    expect((await call(edge.baseUrl, `POST ${path}`, { body, headers: { ...key, ...headers } })).status).toBe(200)
  const text = (name: string, stringValue: string) => ({ key: name, value: { stringValue } })
  const nano = `${Date.now()}000000`
  const attributes = [text('session.id', sessionId), text('exception.type', 'E'), text('exception.message', sessionId)]
  const span = {
    traceId: 'a1'.repeat(16),
    spanId: 'a1'.repeat(8),
    name: 'x',
    startTimeUnixNano: nano,
    endTimeUnixNano: nano,
  }
  await ok('/drain/v1/traces', {
    resourceSpans: [
      {
        scopeSpans: [
          { spans: [{ ...span, attributes, events: [{ name: 'exception', timeUnixNano: nano, attributes }] }] },
        ],
      },
    ],
  })
  await ok('/drain/v1/logs', {
    resourceLogs: [{ scopeLogs: [{ logRecords: [{ timeUnixNano: nano, body: { stringValue: 'x' }, attributes }] }] }],
  })
  if (identifier) {
    await ok('/v3/session/identify', { sessionId, identifier, source: { type: 'custom', name: 'shop' } })
  }
  await ok('/v3/session', { sessionId })
  const metadata = encodeReplayMetadata({ windowId: 'w', segmentId, firstTs: 1, lastTs: 2 })
  await ok(`/v3/replay/upload/${sessionId}`, `{"type":2,"timestamp":1}\n`, { 'x-replay-metadata': metadata })
}

/** Returns the number of rows of sessions by table. */
async function rowsOf(sessionIds: readonly string[]): Promise<Record<string, number>> {
  const counts = [...ERASED_TABLES, { table: 'dead_letters' }].map(async ({ table }) => {
    const ids = sessionIds.map(id => `'${id}'`).join(', ')
    const [row] = await database.rows<{ n: number }>(`SELECT count() AS n FROM ${table} WHERE session_id IN (${ids})`)
    return [table, Number(row?.n)] as const
  })
  return Object.fromEntries(await Promise.all(counts))
}
const total = (rows: Record<string, number>) => Object.values(rows).reduce((sum, count) => sum + count, 0)
const chunksOf = (sessionId: string) => listObjects(services.s3, `replays/${workspaceId}/${surfaceId}/${sessionId}/`)
const isSettled = async () =>
  (await Promise.all(QUEUES.map(queue => redis.zcard(`penstock:{${queue}.0}:pending`)))).every(n => n === 0)

async function ask(operation: string, body?: unknown) {
  return call(api.baseUrl, operation, { bearer: await signToken({ org: slug }), body })
}
async function read(id: string): Promise<ShownErasure> {
  return ((await ask(`GET /v3/erasures/${id}`)).body as ErasureAnswer).erasure
}
/** Returns whether an erasure is done. The night that it waits for comes at once. */
const isDone = (id: string) => async () => {
  const { state } = await read(id)
  if (state === 'waiting_for_rewrite') await redis.hdel(upkeepKeys.done, 'rewrites')
  return state === 'done'
}
const LONG = { deadlineMs: 90_000 }

it('erases all sessions of an identifier, also what waits in the queues, and leaves others alone', async () => {
  runPools()
  await send('anna-1', PERSON, 0)
  await send('bob-1', OTHER, 0)
  await until('the first requests are stored', isSettled)
  const rowsOfOther = await rowsOf(['bob-1'])
  expect(total(await rowsOf(['anna-1']))).toBe(total(rowsOfOther))
  await stopPools()
  // These wait: more of the known session, and a session that only these requests name.
  await send('anna-1', undefined, 1)
  await send('anna-2', PERSON, 0)

  const created = await ask('POST /v3/erasures', { identifier: PERSON })
  expect(created.status).toBe(201)
  const { erasure } = created.body as ErasureAnswer
  expect(JSON.stringify(created.body)).not.toContain(PERSON)
  // The same request again is the same erasure.
  expect(((await ask('POST /v3/erasures', { identifier: PERSON })).body as ErasureAnswer).erasure.id).toBe(erasure.id)
  runUpkeep()
  await until('the stored data is deleted', async () => (await read(erasure.id)).state === 'settling', LONG)
  // The identity leads to the session until everything else is gone.
  const { session_identities, ...others } = await rowsOf(['anna-1'])
  expect([session_identities, total(others)]).toEqual([1, 0])
  expect(await chunksOf('anna-1')).toEqual([])
  runPools()
  await until('the erasure is done', isDone(erasure.id), LONG)

  const sessions = ['anna-1', 'anna-2']
  expect(await isSettled()).toBe(true)
  expect(total(await rowsOf(sessions))).toBe(0)
  expect([...(await chunksOf('anna-1')), ...(await chunksOf('anna-2'))]).toEqual([])
  expect(await rowsOf(['bob-1'])).toEqual(rowsOfOther)
  expect(await chunksOf('bob-1')).toHaveLength(1)
  const receipt = await read(erasure.id)
  expect(receipt).toMatchObject({ sessions: 2, objects: 3, rows: { spans: 3, logs: 3, replay_chunks: 3 } })
  expect(receipt.rows.session_identities).toBe(2)
  expect(receipt.completedAt).not.toBeNull()
  expect(JSON.stringify(await contentsOf(redis))).not.toContain(PERSON)
  const counted = await database.rows<{ t: string; n: string }>(
    `SELECT table_name AS t, sum(rows) AS n FROM deleted_rows WHERE reason = 'erased' AND workspace_id = '${workspaceId}' GROUP BY t`,
  )
  for (const { t, n } of counted) expect(Number(n), t).toBe(receipt.rows[t])

  // Sent again, the session is new data.
  await send('anna-1', PERSON, 0)
  await until('the session is stored again', async () => (await isSettled()) && total(await rowsOf(['anna-1'])) > 0)
  const listed = await ask('GET /v3/erasures')
  expect((listed.body as { erasures: ShownErasure[] }).erasures.map(({ id }) => id)).toEqual([erasure.id])
})

it('is created, shown and listed by command, for a single session too', async () => {
  const env = { DIRECTORY_REDIS_URL: redisUrl }
  const words = ['erasures', 'create', '--workspace', slug, '--session', 'bob-1', '--json']
  const { id } = JSON.parse((await runDirectoryCli(words, { env })).stdout)
  runPools()
  runUpkeep()
  await until('the erasure is done', isDone(id), LONG)
  expect(total(await rowsOf(['bob-1']))).toBe(0)
  const shown = await runDirectoryCli(['erasures', 'show', '--workspace', slug, '--erasure', id], { env })
  expect(shown.stdout).toMatch(/: done 20/)
  expect(shown.stdout).toMatch(/^ +1 {2}row of spans$/m)
  const listed = await runDirectoryCli(['erasures', 'list', '--workspace', slug], { env })
  expect(listed.stdout).toContain(id)
  for (const none of [[], ['--session', ''], ['--session', 'a', '--identifier', 'b']]) {
    expect((await runDirectoryCli(['erasures', 'create', '--workspace', slug, ...none], { env })).code).toBe(2)
  }
  expect(
    (await runDirectoryCli(['erasures', 'show', '--workspace', slug, '--erasure', 'ers_none'], { env })).code,
  ).toBe(3)
})

it('erases the dead letters of a session, and keeps the letters of others in the same object', async () => {
  const letter = (body: string) => ({
    workspaceId,
    surfaceId,
    receivedAtMs: Date.now(),
    contentType: 'application/octet-stream' as const,
    contentEncoding: 'identity' as const,
    attributes: '{}',
    body: Buffer.from(body),
  })
  const { body, ranges, metadata } = encodeLetters([letter('of carla'), letter('of others')])
  const [shared, own] = ['shared', 'own'].map(
    job => `dead-letters/${workspaceId}/${surfaceId}/replay/2026-11-22/${job}`,
  )
  const alone = encodeLetters([letter('of carla')])
  await objects.put(shared as string, body, { contentType: 'x', metadata })
  await objects.put(own as string, alone.body, { contentType: 'x', metadata: alone.metadata })
  const row = (sessionId: string, objectKey: string | undefined, i: number) => ({
    ...ownerColumns({ workspaceId, surfaceId, sessionId }),
    received_at: at(Date.now()),
    object_key: objectKey,
    object_offset: ranges[i]?.offset,
    object_length: ranges[i]?.length,
    queue: 'replay',
    job_id: objectKey,
    job_index: i,
  })
  await insertRows(client, 'dead_letters', [row('carla', shared, 0), row('dora', shared, 1), row('carla', own, 0)])
  // A replay of this one was lost.
  await redis.hset(queueKeys('replay').claims(workspaceId, own ?? ''), '0', `1 ${Date.now() - 60_000}`)
  const created = await ask('POST /v3/erasures', { sessionId: 'carla' })
  const { id } = (created.body as ErasureAnswer).erasure
  runUpkeep()
  await until('the erasure is done', isDone(id), LONG)
  const [left, ...others] = await listObjects(services.s3, `dead-letters/${workspaceId}/${surfaceId}/replay/`)
  expect(others).toEqual([])
  expect(left?.key).toBe(shared)
  expect(left?.body).not.toContain('of carla')
  const { offset = 0, length = 0 } = ranges[1] ?? {}
  expect(left?.bytes.subarray(offset, offset + length)).toEqual(body.subarray(offset, offset + length))
  expect(left?.metadata).toEqual(metadata)
  expect(await database.rows(`SELECT session_id AS s FROM dead_letters WHERE workspace_id = '${workspaceId}'`)).toEqual(
    [{ s: 'dora' }],
  )
})

/** Texts that are somewhere in the stores, by the table, the key or the object that has them. */
async function placesOf(texts: readonly string[]): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  const add = (place: string, isFound: boolean) => {
    if (isFound) found[place] = (found[place] ?? 0) + 1
  }
  const has = (bytes: Buffer | string) => texts.some(text => bytes.includes(text))
  const anyOf = texts.map(text => `position(toString(tuple(*)), '${text}') > 0`).join(' OR ')
  for (const table of Object.keys(TABLE_CONTENTS)) {
    const [row] = await database.rows<{ n: number }>(
      `SELECT toUInt32(count()) AS n FROM ${table} WHERE ${anyOf} SETTINGS apply_deleted_mask = 0`,
    )
    add(table, Number(row?.n) > 0)
  }
  for (const key of await redis.keys('*')) {
    const value = await redis.dump(key)
    // A dump is compressed where it is long, so the values are read.
    add(key, has(`${key} ${value} ${JSON.stringify(await contentOf(redis, key))}`))
  }
  for (const { key, body, bytes } of await listObjects(services.s3, '')) {
    if (key.includes(workspaceId)) add(key.split('/', 1)[0] ?? '', has(`${key} ${body}`) || has(bytes))
  }
  return found
}

async function contentOf(store: Redis, key: string): Promise<unknown> {
  const type = await store.type(key)
  if (type === 'string') return store.get(key)
  if (type === 'hash') return store.hgetall(key)
  if (type === 'set') return store.smembers(key)
  if (type === 'zset') return store.zrange(key, '0', '-1')
  if (type === 'list') return store.lrange(key, 0, -1)
  return store.xrange(key, '-', '+')
}

/** Queues and holds an event that names somebody. */
async function alertAbout(name: string): Promise<void> {
  const event = EXAMPLE_EVENTS['finding.commented'] as FindingEvent
  const named = { ...event, data: { ...event.data, workspaceId, finding: { ...event.data.finding, message: name } } }
  const queue = openDeliveryQueue(redis)
  await queue.add([exampleDelivery({ workspaceId, events: [named] })])
  await queue.close()
  const commands = holdEvents({ workspaceId, receiverId: 'rcv_1', ruleName: 'all' }, [named], Date.now())
  await commitIf(redis, { guards: [], commands })
}

it('leaves neither identifier nor address nor name in any store but what it states, bytes of deleted rows included', async () => {
  const [session, identifier, email, name] = ['zora-1', 'zora-4711', 'zora.quill@erase-me.example', 'Zora Quill']
  runPools()
  // The last occurrence of a finding gives it its message, whenever ClickHouse merges its rows.
  await send('other-1', OTHER, 0)
  await send(session, identifier, 0)
  const identity = { sessionId: session, identifier, source: { type: 'custom', name: 'shop' }, email, name }
  const headers = { 'x-service-public-key': publicKey }
  expect((await call(edge.baseUrl, 'POST /v3/session/identify', { body: identity, headers })).status).toBe(200)
  await until('the requests are stored', isSettled)
  await stopPools()
  const { findings } = (await ask('GET /v3/findings')).body as { findings: { id: string }[] }
  const comment = async (text: string, key: string) => {
    const sent = { bearer: await signToken({ org: slug }), body: { text }, headers: { 'idempotency-key': key } }
    expect((await call(api.baseUrl, `POST /v3/findings/${findings[0]?.id}/comments`, sent)).status).toBe(201)
  }
  await comment(`asked ${email.toUpperCase()}, who sees it`, 'by-address')
  await comment(`see /sessions/${session}`, 'by-session')
  await comment('zorana-4711 is another one', 'of-another')
  await alertAbout(name)
  const texts = [identifier, email, name, session]
  const { id } = ((await ask('POST /v3/erasures', { identifier })).body as ErasureAnswer).erasure
  runUpkeep()
  const waiting = await until('everything is deleted', async () => {
    const erasure = await read(id)
    return erasure.state === 'waiting_for_rewrite' ? erasure : undefined
  })
  expect(waiting).toMatchObject({ comments: 2, completedAt: null })
  expect(total(await rowsOf([session]))).toBe(0)
  expect(Object.keys(await placesOf(texts))).toContain('session_identities')

  await redis.hdel(upkeepKeys.done, 'rewrites')
  await until('the erasure is done', isDone(id), LONG)
  const { remains } = (await ask(`GET /v3/erasures/${id}`)).body as ErasureAnswer
  const left = await until('the files without the rows are read', async () => {
    const places = Object.keys(await placesOf(texts))
    return places.every(place => TABLE_CONTENTS[place] === 'findings') ? places : undefined
  })
  // The message of the exception is the id of the session. In a cluster one shard is searched, which may have no finding.
  const isCluster = services.clickhouseUrl.includes(',')
  expect(left).toEqual(isCluster && left.length === 0 ? [] : ['findings'])
  expect(remains.find(({ what }) => what === 'findings')?.until).toMatch(/T00:00:00.000Z$/)
  expect(remains.map(({ what }) => what)).toEqual([...STAYING_KINDS])
  const { activity } = (await ask(`GET /v3/findings/${findings[0]?.id}/activity`)).body as { activity: object[] }
  expect(activity).toMatchObject([{ text: 'zorana-4711 is another one' }])
  expect(total(await rowsOf(['other-1']))).toBeGreaterThan(0)
})

/** Stores a session with an identity, heartbeats and a chunk. */
async function fill(sessionId: string, identifier: string): Promise<void> {
  const owner = { workspaceId, surfaceId, sessionId }
  const columns = { ...ownerColumns(owner), received_at: at(Date.now()) }
  await insertRows(client, 'session_identities', [{ ...columns, identifier }])
  await insertRows(client, 'session_heartbeats', [columns, { ...columns, device_id: 'd' }])
  await storeChunk(client, objects, owner, { windowId: 'w', segmentId: '0', events: [{ type: 2, timestamp: 1 }] })
}

/** Dependencies of an erasure in this process, with everything settled. */
const depsOf = (directory: Directory) => ({
  clickhouse: client,
  erasures: directory,
  eraseAlerts: async () => {},
  eraseComments: (id: string, naming: Naming) => eraseComments(redis, id, naming, async () => {}),
  objects: { delete: async (_: string, keys: readonly string[]) => objects.deleteMany(keys) },
  store: objects,
  claims: new LetterClaims(onOneServer(redis), 30),
  settledBeforeMs: (id: string) => settledBeforeMs(onOneServer(redis), id),
  redisTimeMs: () => redisTimeMs(redis),
  now: Date.now,
  assertElected: async () => {},
})

it('erases the sessions that it found before the directory was lost and imported, too', async () => {
  const directory = createDirectory(redis)
  await fill('moved', 'moved')
  const subject = { kind: 'identifier', identifier: 'moved' } as const
  const { id } = (await directory.createErasure({
    workspaceId,
    subject,
    now: Date.now(),
  })) as Erasure
  const begun = (await directory.erasure(workspaceId, id)) as Erasure
  const settling = await erasePerson({ ...depsOf(directory), settledBeforeMs: async () => 0 }, begun)
  expect(settling).toMatchObject({ state: 'settling', sessions: 1 })

  const env = { DIRECTORY_REDIS_URL: redisUrl }
  const { stdout } = await runDirectoryCli(['directory', 'export'], { env })
  await redis.flushdb()
  expect(await runDirectoryCli(['directory', 'import'], { env, stdin: stdout })).toMatchObject({ code: 0 })
  // Data of a session that waited in the queues has no identity.
  const columns = { ...ownerColumns({ workspaceId, surfaceId, sessionId: 'moved' }), received_at: at(Date.now()) }
  await insertRows(client, 'session_heartbeats', [columns])
  const imported = (await directory.erasure(workspaceId, id)) as Erasure
  const done = await until('the erasure is done', async () => {
    const worked = await erasePerson(depsOf(directory), (await directory.erasure(workspaceId, id)) ?? imported)
    return worked.state === 'waiting_for_rewrite' ? worked : undefined
  })
  expect(total(await rowsOf(['moved']))).toBe(0)
  expect(done).toMatchObject({ sessions: 1 })
  expect(done?.rows).toEqual({ session_heartbeats: 3, replay_chunks: 1, session_identities: 1 })
})

it('erases sessions whose ids together exceed a parameter of a query', async () => {
  const directory = createDirectory(redis)
  const ids = Array.from({ length: 150 }, (_, i) => `${i}-${'\\ü'.repeat(500)}`)
  const columns = ids.map(sessionId => ({
    ...ownerColumns({ workspaceId, surfaceId, sessionId }),
    received_at: at(Date.now()),
  }))
  await insertRows(
    client,
    'session_identities',
    columns.map(row => ({ ...row, identifier: 'long' })),
  )
  await insertRows(client, 'session_heartbeats', columns)
  const subject = { kind: 'identifier', identifier: 'long' } as const
  const begun = await directory.createErasure({ workspaceId, subject, now: Date.now() })
  const settledBefore = async () => Number.POSITIVE_INFINITY
  const done = await erasePerson({ ...depsOf(directory), settledBeforeMs: settledBefore }, begun as Erasure)
  const rows = { session_heartbeats: ids.length, session_identities: ids.length }
  expect(done).toMatchObject({ state: 'waiting_for_rewrite', sessions: ids.length, rows })
})

it('has the same result wherever it is interrupted', async () => {
  const directory = createDirectory(redis)
  let interruptedAt = 0
  for (let isOver = false; !isOver; interruptedAt += 3) {
    const identifier = `interrupted-${interruptedAt}`
    await fill(identifier, identifier)
    const request = {
      workspaceId,
      subject: { kind: 'identifier', identifier },
      now: Date.now(),
    } as const
    const erasure = (await directory.createErasure(request)) as Erasure
    const deps = depsOf(directory)
    let steps = 0
    const assertElected = async () => {
      if (steps++ === interruptedAt) throw new Error('killed')
    }
    const first = await erasePerson({ ...deps, assertElected }, erasure).catch(() => undefined)
    isOver = first !== undefined
    const stored = (await directory.erasure(workspaceId, erasure.id)) as Erasure
    await until('the erasure is done', async () => {
      const current = (await directory.erasure(workspaceId, erasure.id)) ?? stored
      return (await erasePerson(deps, current)).state === 'waiting_for_rewrite'
    })
    const done = await directory.erasure(workspaceId, erasure.id)
    expect(done?.rows, `interrupted at step ${interruptedAt}`).toEqual({
      session_heartbeats: 2,
      replay_chunks: 1,
      session_identities: 1,
    })
    expect(total(await rowsOf([identifier]))).toBe(0)
    expect(await chunksOf(identifier)).toEqual([])
  }
  expect(interruptedAt).toBeGreaterThan(20)
}, 180_000)

it('is continued by another worker when the first one is killed', async () => {
  for (let i = 0; i < 20; i++) await fill(`killed-${i}`, 'killed')
  const start = () =>
    spawn(process.execPath, [WORKER, '--pools', 'replay'], {
      stdio: process.env.TEST_LOG ? 'inherit' : 'ignore',
      env: {
        ...process.env,
        ...objectStore,
        REDIS_URL: redisUrl,
        DIRECTORY_REDIS_URL: redisUrl,
        CLICKHOUSE_URL: services.clickhouseUrl,
        ...clusterSettings(services.clickhouseUrl),
        CLICKHOUSE_DATABASE: database.name,
        REDIS_DURABILITY: 'unchecked',
        WORKERS_ADMIN_PORT: String(20_000 + (process.pid % 20_000)),
      },
    })
  const created = await ask('POST /v3/erasures', { identifier: 'killed' })
  const { id } = (created.body as ErasureAnswer).erasure
  const first = start()
  try {
    await until('the first worker has begun', async () => (await read(id)).sessions > 0, LONG)
  } finally {
    first.kill('SIGKILL')
  }
  const second = start()
  try {
    await until('the erasure is done', isDone(id), LONG)
  } finally {
    second.kill('SIGKILL')
  }
  const sessions = Array.from({ length: 20 }, (_, i) => `killed-${i}`)
  expect(total(await rowsOf(sessions))).toBe(0)
  expect((await read(id)).rows).toEqual({ session_heartbeats: 40, replay_chunks: 20, session_identities: 20 })
  for (const session of sessions) expect(await chunksOf(session)).toEqual([])
}, 180_000)
