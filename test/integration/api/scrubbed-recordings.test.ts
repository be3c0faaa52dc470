import { createHash, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'
import { pack } from '@rrweb/packer'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { usagePageSchema } from '../../../schemas/http/usage.ts'
import { VALUE_KINDS } from '../../../schemas/records/scrubbing.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { encodeReplayMetadata } from '../../support/clients/encode-replay-metadata.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/9`
const QUEUES = ['replay', 'replay-chunks'] as const
/** Events of rrweb in Chromium: an address and a number of a card are typed, and then shown by the page. */
const RECORDING = readFileSync(new URL('../../support/payloads/typed-recording.jsonl', import.meta.url), 'utf8')
const SECRETS = ['zorana@example.com', '4111 1111 1111 1111']
/** `zorana@example.co` is an address too. */
const VALUES = /zorana@example\.com?|4111 1111 1111 1111|hash:[0-9a-f]{16}/g
const RULES = [
  { name: 'by key', keys: ['text', 'id'], action: 'mask' },
  { name: 'values', values: [...VALUE_KINDS], action: 'hash' },
]
const sha256Of = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('recordings', () => {
  const workspaceId = newId('ws')
  const surfaceId = newId('srf')
  const slug = `recorded-${workspaceId.slice(-8)}`
  const objectStore = s3Settings(services.s3)
  let redis: Redis
  let database: TestDatabase
  let edge: TestEdge
  let api: TestApi
  let pools: TestPools
  let objects: ObjectStore
  let publicKey: string

  beforeAll(async () => {
    redis = new Redis(redisUrl)
    await redis.flushdb()
    await putWorkspace(redisUrl, { id: workspaceId, slug })
    database = await createTestDatabase(services.clickhouseUrl, `recordings_${process.pid}`)
    edge = await startEdge(redisUrl, objectStore)
    api = await startApi({ ...services, redisUrl }, database.name, objectStore)
    publicKey = await issueKey(createDirectory(redis), { workspaceId, surfaceId })
    objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
    pools = startPools(QUEUES, { ...services, redisUrl }, database.name)
  })
  afterAll(async () => {
    await pools?.stop()
    await api?.stop()
    await edge?.stop()
    objects?.close()
    await database?.drop()
    redis?.disconnect()
  })

  const ask = async (operation: string, body?: unknown) =>
    call(api.baseUrl, operation, { bearer: await signToken({ org: slug }), body })

  /** Uploads a chunk, and returns the bytes of its object once it is stored. */
  async function store(sessionId: string, body: Uint8Array): Promise<Buffer> {
    const metadata = encodeReplayMetadata({ windowId: SECRETS[0], segmentId: 0, firstTs: 1, lastTs: 2 })
    const response = await fetch(`${edge.baseUrl}/v3/replay/upload/${sessionId}`, {
      method: 'POST',
      headers: { 'x-service-public-key': publicKey, 'x-replay-metadata': metadata },
      body: new Uint8Array(body),
    })
    const { objectKey } = (await response.json()) as { objectKey: string }
    await until('the chunk is stored', async () => {
      const open = await Promise.all(QUEUES.map(queue => redis.zcard(`penstock:{${queue}.0}:pending`)))
      return open.every(count => count === 0)
    })
    return (await objects.get(objectKey, MIB))?.body ?? Buffer.alloc(0)
  }

  async function eventsOf(sessionId: string): Promise<string> {
    const response = await fetch(`${api.baseUrl}/v3/sessions/${sessionId}/replay/events`, {
      headers: { authorization: `Bearer ${await signToken({ org: slug })}` },
    })
    expect(response.status).toBe(200)
    return response.text()
  }

  const found = (text: string) => SECRETS.filter(secret => text.includes(secret))
  /** Events with every hash, and every value of which there is one, as a dot. */
  const maskedOf = (line: string) => JSON.parse(line.replaceAll(VALUES, '•')) as object
  const masked = (lines: string) => lines.trim().split('\n').map(maskedOf)
  const rowsOf = (sessionId: string) =>
    database.rows(
      `SELECT stored_bytes, decompressed_bytes, event_count, has_full_snapshot, lower(hex(sha256)) AS sha256,
              lower(hex(sent_sha256)) AS sent_sha256 FROM replay_chunks WHERE session_id = '${sessionId}'`,
    )

  it('are stored as they were sent by a workspace whose rules look for no values', async () => {
    const sent = gzipSync(RECORDING, { level: 1 })
    expect((await store('as-sent', sent)).equals(sent)).toBe(true)
    expect(found(await eventsOf('as-sent'))).toEqual(SECRETS)
  })

  it('lose the values that rules look for, and nothing else', async () => {
    const rules = await ask('PUT /v3/scrubbing', { revision: 0, rules: RULES })
    expect(rules.status).toBe(200)
    await until(
      'the workers know the rules',
      async () =>
        !gunzipSync(await store(randomUUID(), gzipSync(RECORDING)))
          .toString()
          .includes('zorana@example.com'),
      { deadlineMs: 30_000 },
    )
    const lines = RECORDING.trim().split('\n')
    const packed = lines.map(line => JSON.stringify(pack(JSON.parse(line)))).join('\n')
    for (const [sessionId, body] of [
      ['plain', Buffer.from(RECORDING)],
      ['gzipped', gzipSync(RECORDING)],
      ['packed', gzipSync(packed)],
    ] as const) {
      const object = await store(sessionId, body)
      const stored = gunzipSync(object).toString()
      const shown = await eventsOf(sessionId)
      expect([found(stored), found(shown)]).toEqual([[], []])
      expect(masked(stored)).toEqual(
        lines.map(line => (sessionId === 'packed' ? { ...maskedOf(line), v: 'v1' } : maskedOf(line))),
      )
      expect(await rowsOf(sessionId)).toEqual([
        {
          stored_bytes: object.length,
          decompressed_bytes: Buffer.byteLength(stored),
          event_count: lines.length,
          has_full_snapshot: true,
          sha256: sha256Of(stored),
          sent_sha256: sha256Of(body),
        },
      ])
      // The window is an id, by which the recording is found.
      const { chunks } = (await ask(`GET /v3/sessions/${sessionId}/replay`)).body as { chunks: { windowId: string }[] }
      expect(chunks).toMatchObject([{ windowId: SECRETS[0] }])
    }
  })

  it('are the same chunk when they are sent again', async () => {
    const body = gzipSync(RECORDING)
    const first = await store('again', body)
    expect((await store('again', body)).equals(first)).toBe(true)
    expect((await store('again', gzipSync(RECORDING, { level: 1 }))).equals(first)).toBe(true)
    expect(await rowsOf('again')).toHaveLength(1)
  })

  it('are counted in the usage with the values that were replaced in them', async () => {
    const { usage } = usagePageSchema.parse((await ask('GET /v3/usage')).body)
    const [row] = usage.filter(({ scrubbed }) => scrubbed.length > 0)
    expect(row?.scrubbed).toMatchObject([{ rule: 'values' }])
    const inChunk = RECORDING.match(VALUES)?.length ?? 0
    const chunks = Number(row?.scrubbed[0]?.values) / inChunk
    // The plain, the gzipped and the packed one, one of those that were sent again, and one by which the rules were noticed.
    expect([inChunk > 5, chunks]).toEqual([true, 5])
  })
})
