import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { KIB, MIB } from '../../../schemas/units.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { createDatabase, putWorkspace, signToken } from '../../support/services/api.ts'
import { type MeasuredApi, startMeasuredApi } from '../../support/services/measured-api.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'
import { at, insertRows, ownerColumns } from '../../support/workspaces/session-rows.ts'

const DATABASE = `api_replay_memory_${process.pid}`
const READERS = 16
const WINDOWS = 4

/** Starts the API as a separate process, so that its memory can be measured. */
describe('the memory of the API', () => {
  const services = sharedServices()
  const owner = { workspaceId: 'ws_1', surfaceId: `srf_${process.pid}`, sessionId: 's' }
  let client: ClickHouseClient
  let objects: ObjectStore
  let api: MeasuredApi
  let token: string

  beforeAll(async () => {
    const { s3 } = services
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    token = await signToken()
    const stores = { ...services, database: DATABASE }
    api = await startMeasuredApi(stores, {
      ...s3Settings(s3),
      // One workspace may have half of them.
      REPLAY_STREAMS: String(2 * READERS),
    })
    // Each window has one chunk, which is a single event of almost 100 MiB between two short ones.
    const line = (timestamp: number, size: number) => `{"data":"${'x'.repeat(size)}","timestamp":${timestamp}}\n`
    const body = gzipSync(line(1, 10) + line(2, 99 * MIB) + line(3, 10))
    for (let window = 0; window < WINDOWS; window++) {
      const objectKey = `replays/ws_1/${owner.surfaceId}/s/w${window}/0.jsonl.gz`
      await objects.put(objectKey, body, { contentType: 'application/gzip' })
      const times = { first_ts_ms: 1, last_ts_ms: 3, first_event_ms: 1, last_event_ms: 3 }
      const counts = { segment_number: 0, activity_count: 0, event_count: 3, has_full_snapshot: false }
      const sizes = { stored_bytes: body.length, decompressed_bytes: 99 * MIB, sha256: 'x'.repeat(32) }
      const ids = { window_id: `w${window}`, segment_id: '0', object_key: objectKey, received_at: at(Date.now()) }
      await insertRows(client, 'replay_chunks', [{ ...ownerColumns(owner), ...ids, ...times, ...counts, ...sizes }])
    }
  })
  afterAll(async () => {
    await api?.stop(2_000)
    objects?.close()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  it('stays under 256 MiB with 16 slow readers of events of 100 MiB in 4 windows', async () => {
    const readers = Array.from({ length: READERS }, () => slowReader())
    // Each stream is in the middle of the first long event, and the times of those in the other open chunks are known.
    const isReading = () => readers.every(({ bytes }) => bytes() > 512 * KIB)
    await until('all streams to be read', isReading, { deadlineMs: 90_000 })
    for (const { socket } of readers) socket.destroy()
    expect(new Set(readers.map(({ head }) => head()))).toEqual(new Set(['HTTP/1.1 200 OK']))
    expect(api.highWater()).toBeLessThan(256 * MIB)
  }, 120_000)

  /** Reads 64 KiB every half second. */
  function slowReader() {
    const socket: Socket = connect({ port: api.port, host: '127.0.0.1', highWaterMark: 64 * KIB } as never)
    let bytes = 0
    let head = ''
    socket.on('data', data => {
      if (head === '') head = data.toString('latin1', 0, 15)
      bytes += data.length
      socket.pause()
      setTimeout(() => socket.resume(), 500)
    })
    socket.on('error', () => {})
    socket.write(`GET /v3/sessions/s/replay/events HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n\r\n`)
    return { socket, bytes: () => bytes, head: () => head }
  }
})
