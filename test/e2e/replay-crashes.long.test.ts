import { createHash, randomBytes, randomInt } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzipSync, gzip } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { HOUR_MS, MIB } from '../../schemas/units.ts'
import { createObjectStore } from '../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { encodeReplayMetadata } from '../support/clients/encode-replay-metadata.ts'
import { namedReceipts, receiptName } from '../support/clients/named-receipts.ts'
import { rounds } from '../support/length.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const compress = promisify(gzip)
const CLIENTS = 3
/** Number of chunks that are acknowledged before, between and after the kills. */
const CHUNKS_BETWEEN = 40

let stack: Stack
let clickhouse: ClickHouseClient
let objects: ObjectStore

beforeAll(async () => {
  stack = await startStack({
    JOB_LOCK_MS: '2000',
    JOB_STALLED_CHECK_MS: '500',
    SWEEP_INTERVAL_MS: '1000',
  })
  clickhouse = createClickHouse({
    url: stack.services.clickhouseUrl,
    database: 'penstock',
  })
  objects = createObjectStore({ ...stack.services.s3, requestTimeoutMs: 10_000 })
})

afterAll(async () => {
  objects?.close()
  await clickhouse?.close()
  await stack?.stop()
})

describe.each([
  ['the replay worker', () => stack.workers],
  ['the S3 server', () => stack.services.s3Server],
] as const)('kill -9 of %s during uploads', (_name, victim) => {
  it('leaves every acknowledged chunk stored once, whole, and with one row', async () => {
    const stream = startUploads(`run-${randomBytes(4).toString('hex')}`)
    await until('chunks are acknowledged', () => stream.acknowledged.size > CHUNKS_BETWEEN)
    for (let round = 0; round < rounds(3); round++) {
      await victim().kill9()
      const atKill = stream.acknowledged.size
      await until('chunks are acknowledged in the outage', () => stream.acknowledged.size > atKill + CHUNKS_BETWEEN)
      await victim().restart()
      const atRestart = stream.acknowledged.size
      await until('chunks are acknowledged again', () => stream.acknowledged.size > atRestart + CHUNKS_BETWEEN)
    }
    await stream.stop()

    const rows = await until(
      'every acknowledged chunk has its row',
      async () => {
        const found = await rowsOf(stream.name)
        return [...stream.acknowledged.keys()].every(key => found.has(key)) ? found : undefined
      },
      { deadlineMs: 60_000, everyMs: 200 },
    )
    expect([...rows].filter(([, { count }]) => count !== 1)).toEqual([])
    const stored = await readObjects(stream.name)
    expect([...stored.keys()].sort()).toEqual([...stream.sent.keys()].sort())
    const differing = [...stored].filter(([key, { sha256 }]) => sha256 !== stream.sent.get(key))
    expect(differing).toEqual([])
    const ofRows = new Map([...rows].map(([key, { sha256, storedBytes }]) => [key, { sha256, bytes: storedBytes }]))
    expect(stored).toEqual(ofRows)
    expect(await keysBelow('dead-letters/')).toEqual([])
    const named = await until('the log contains every receipt', async () => {
      const counts = await namedReceipts(rowsFrom)
      return stream.receipts.every(id => counts.has(receiptName(id))) ? counts : undefined
    })
    expect([...named].filter(([, count]) => count !== 1)).toEqual([])
  })
})

it('events of chunks that arrived out of order, hours apart and in two windows, are read in the order of their times', async () => {
  const sessionId = `order-${randomBytes(4).toString('hex')}`
  const startMs = Date.now() - 24 * HOUR_MS
  const chunks = ['left', 'right'].flatMap((windowId, window) =>
    Array.from({ length: 8 }, (_, segmentId) => {
      const firstTs = startMs + (2 * segmentId + window) * HOUR_MS
      const events = [0, 1, 2].map(i => ({
        type: i === 0 ? 2 : 3,
        data: { windowId, segmentId, i },
        timestamp: firstTs + i,
      }))
      return { windowId, segmentId, events }
    }),
  )
  for (const { windowId, segmentId, events } of shuffled(chunks)) {
    const body = await compress(events.map(event => `${JSON.stringify(event)}\n`).join(''))
    const times = { firstTs: events[0]?.timestamp, lastTs: events.at(-1)?.timestamp }
    expect(await upload(sessionId, { windowId, segmentId, ...times }, body)).toBeDefined()
  }
  await until('all chunks are indexed', async () => (await rowsOf(sessionId)).size === chunks.length)
  const inOrder = chunks.flatMap(({ events }) => events).sort((a, b) => a.timestamp - b.timestamp)
  expect(await readEvents(sessionId)).toEqual(inOrder)
})

interface UploadStream {
  /** Session id of all chunks. */
  readonly name: string
  /** SHA-256 of the JSON lines by object key, of the chunks that were answered with 200. */
  readonly acknowledged: ReadonlyMap<string, string>
  readonly sent: ReadonlyMap<string, string>
  /** Receipt ids of every upload that was answered with 200, also of repeated ones. */
  readonly receipts: readonly string[]
  stop(): Promise<void>
}

/** Starts clients that upload without pause. They repeat a chunk until it is answered, and send every fifth twice at once. */
function startUploads(name: string): UploadStream {
  const acknowledged = new Map<string, string>()
  const sent = new Map<string, string>()
  const receipts: string[] = []
  let serial = 0
  let over = false

  async function client(): Promise<void> {
    while (!over) {
      const segmentId = serial++
      const jsonLines = makeJsonLines(segmentId)
      const sha256 = createHash('sha256').update(jsonLines).digest('hex')
      const body = segmentId % 3 === 0 ? jsonLines : await compress(jsonLines)
      const metadata = { windowId: 'w', segmentId, firstTs: segmentId, lastTs: segmentId + 1 }
      sent.set(
        `replays/${stack.secrets.workspaceId}/${stack.secrets.surfaceId}/${name}/w/${segmentId}.jsonl.gz`,
        sha256,
      )
      const answers = await Promise.all(
        Array.from({ length: segmentId % 5 === 0 ? 2 : 1 }, () =>
          until('a chunk is acknowledged', () => upload(name, metadata, body), { deadlineMs: 30_000 }),
        ),
      )
      for (const { objectKey, receiptId } of answers) {
        acknowledged.set(objectKey, sha256)
        receipts.push(receiptId)
      }
    }
  }

  const clients = Array.from({ length: CLIENTS }, client)
  return {
    name,
    acknowledged,
    sent,
    receipts,
    async stop() {
      over = true
      await Promise.all(clients)
    },
  }
}

/** Makes JSON lines of 1 to 200 KB, so that a put takes some time, of bytes that do not compress well. */
function makeJsonLines(segmentId: number): Buffer {
  const lines = Array.from({ length: randomInt(1, 20) }, (_, i) =>
    JSON.stringify({
      type: 3,
      timestamp: segmentId,
      data: { i, noise: randomBytes(randomInt(500, 8_000)).toString('hex') },
    }),
  )
  return Buffer.from(`${lines.join('\n')}\n`)
}

interface Upload {
  readonly objectKey: string
  readonly receiptId: string
}

/** Uploads a chunk and returns its key and receipt id, or undefined if it was not acknowledged. */
async function upload(sessionId: string, metadata: object, body: Buffer): Promise<Upload | undefined> {
  try {
    const response = await fetch(`${stack.ingestUrl}/v3/replay/upload/${sessionId}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/octet-stream',
        'x-service-public-key': stack.secrets.publicKey,
        'x-replay-metadata': encodeReplayMetadata(metadata),
      },
      body: new Uint8Array(body),
      signal: AbortSignal.timeout(5_000),
    })
    const { objectKey } = (await response.json()) as { objectKey: string }
    const receiptId = response.headers.get('x-receipt-id') ?? 'none'
    return response.status === 200 ? { objectKey, receiptId } : undefined
  } catch {
    return undefined // what is not answered counts as lost
  }
}

async function rowsFrom<T>(query: string): Promise<T[]> {
  const result = await clickhouse.query({ query, format: 'JSONEachRow' })
  return result.json<T>()
}

async function rowsOf(sessionId: string) {
  const result = await clickhouse.query({
    query: `SELECT object_key AS key, count() AS count, lower(hex(any(sha256))) AS sha256, any(stored_bytes) AS bytes
            FROM replay_chunks WHERE session_id = {sessionId: String} GROUP BY object_key`,
    query_params: { sessionId },
    format: 'JSONEachRow',
  })
  const rows = await result.json<{ key: string; count: string; sha256: string; bytes: string }>()
  return new Map(
    rows.map(row => [row.key, { count: Number(row.count), sha256: row.sha256, storedBytes: Number(row.bytes) }]),
  )
}

async function keysBelow(prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const page of objects.list(prefix)) keys.push(...page.map(({ key }) => key))
  return keys
}

/** Reads the objects of a session: the length of each, and the digest of its decompressed bytes. */
async function readObjects(sessionId: string): Promise<Map<string, { sha256: string; bytes: number }>> {
  const { workspaceId, surfaceId } = stack.secrets
  const found = new Map<string, { sha256: string; bytes: number }>()
  for (const key of await keysBelow(`replays/${workspaceId}/${surfaceId}/${sessionId}/`)) {
    const object = await objects.get(key, MIB)
    if (!object) throw new Error(`${key} is listed, and not there`)
    const sha256 = createHash('sha256').update(gunzipSync(object.body)).digest('hex')
    found.set(key, { sha256, bytes: object.body.length })
  }
  return found
}

async function readEvents(sessionId: string): Promise<unknown[]> {
  const response = await fetch(`${stack.apiUrl}/v3/sessions/${sessionId}/replay/events`, {
    headers: { authorization: `Bearer ${stack.secrets.sessionToken}` },
    signal: AbortSignal.timeout(30_000),
  })
  expect(response.status).toBe(200)
  const text = await response.text()
  return text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line)]))
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map(item => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}
