import { Redis } from 'ioredis'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { selectEdges } from '../../../../clickhouse/queries/services/select-edges.ts'
import { MINUTE_MS } from '../../../../schemas/units.ts'
import { newId } from '../../../../shared/directory/directory.ts'
import { upkeepKeys } from '../../../../shared/directory/record.ts'
import { bucketOfDuration } from '../../../../workers/span-stats/duration-bucket.ts'
import { countEdges } from '../../../../workers/upkeep/edges/count-edges.ts'
import { connectDatabase } from '../../../support/cluster/connect.ts'
import { seededRandom } from '../../../support/payloads/scramble-message.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createTestDatabase } from '../../../support/services/test-database.ts'
import {
  CLIENT,
  CONSUMER,
  hex,
  LOCAL,
  PRODUCER,
  SERVER,
  type StagedSpan,
  storeSpans,
} from '../../../support/staged-calls.ts'

const services = sharedServices()
const database = await createTestDatabase(services.clickhouseUrl, `edges_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const redis = new Redis(`${services.redisUrl}/9`)
/** The minute of arrival that is counted, another one for each test. */
let minuteMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 300 * MINUTE_MS
let workspaceId = ''

beforeEach(async () => {
  minuteMs += 10 * MINUTE_MS
  await redis.set(upkeepKeys.edgesBefore, minuteMs)
  workspaceId = newId('ws')
})
afterAll(async () => {
  redis.disconnect()
  await clickhouse.close()
  await database.drop()
})

const store = (spans: readonly StagedSpan[], ofWorkspace = workspaceId) =>
  storeSpans(clickhouse, { workspaceId: ofWorkspace, minuteMs }, spans)
const count = (settledBeforeMs = minuteMs + 2 * MINUTE_MS) =>
  countEdges({
    ...{ redis, clickhouse },
    settledBeforeMs: async () => settledBeforeMs,
    assertElected: async () => {},
  })

/** Returns the calls of the workspace as texts, with their numbers of calls and errors. */
async function edges(ofWorkspace = workspaceId): Promise<Record<string, string>> {
  const range = { fromSeconds: minuteMs / 1_000 - 3_600, toSeconds: minuteMs / 1_000 + 3_600 }
  const rows = await selectEdges(clickhouse, { workspaceId: ofWorkspace, ...range }, 5_000, AbortSignal.timeout(20_000))
  return Object.fromEntries(
    rows.map(({ caller, callee, hasCaller, hasCallee, kind, system, peerName, count: calls, errors }) => [
      [hasCaller ? caller : '?', kind, hasCallee ? callee : '?', system, peerName].join(' ').trimEnd(),
      `${calls} calls, ${errors} errors`,
    ]),
  )
}

describe('calls between services', () => {
  it('are those of a topology of 15 services, as its spans have them', async () => {
    const random = seededRandom(42)
    const names = Array.from({ length: 15 }, (_, i) => `service-${i}`)
    const spans: StagedSpan[] = []
    let id = 1
    const call = (trace: number, caller: number, parent: number, depth: number) => {
      for (let i = 0; i < 3 && depth < 4; i++) {
        const callee = Math.floor(random() * names.length)
        const failed = random() < 0.1
        const [client, server] = [id++, id++]
        const isMessage = random() < 0.2
        const peer = random()
        const attributes: Record<string, string> = isMessage
          ? { 'messaging.system': 'kafka', 'messaging.destination.name': `topic-${callee}` }
          : peer < 0.3
            ? { 'db.system.name': 'postgresql', 'db.namespace': `db-${callee}` }
            : { 'server.address': `host-${callee}` }
        const hasServer = attributes['db.system.name'] === undefined && random() < 0.8
        const arrivesMs = Math.floor(random() * MINUTE_MS)
        // Some of the other sides arrive in the minute before or after.
        const serverArrivesMs = arrivesMs + Math.floor((random() - 0.5) * MINUTE_MS)
        const service = names[caller] as string
        const of = { trace, failed, durationNano: Math.floor(random() * 1e9) }
        const kind = isMessage ? PRODUCER : CLIENT
        if (random() < 0.9)
          spans.push({ ...of, id: client, parent, service, kind, flags: LOCAL, attributes, arrivesMs })
        if (!hasServer) continue
        const served = {
          service: names[callee] as string,
          kind: isMessage ? CONSUMER : SERVER,
          arrivesMs: serverArrivesMs,
        }
        spans.push({ ...of, ...served, id: server, parent: client, ...(isMessage && { attributes }) })
        if (random() < 0.4) call(trace, callee, server, depth + 1)
      }
    }
    for (let trace = 1; trace <= 60; trace++) call(trace, 0, 0xffff, 0)
    await store(spans)
    // Some have arrived in the minute before.
    await redis.set(upkeepKeys.edgesBefore, minuteMs - MINUTE_MS)
    await count(minuteMs + 4 * MINUTE_MS)

    const byId = new Map(spans.map(span => [span.id, span]))
    const received = spans.filter(({ kind }) => kind === SERVER || kind === CONSUMER)
    const parents = new Set(received.map(({ parent }) => parent))
    const expected = new Map<string, { calls: number; errors: number }>()
    const add = (words: readonly (string | undefined)[], failed: boolean | undefined) => {
      const key = words.join(' ').trimEnd()
      const { calls, errors } = expected.get(key) ?? { calls: 0, errors: 0 }
      expected.set(key, { calls: calls + 1, errors: errors + Number(failed) })
    }
    for (const span of received) {
      const { service, kind, parent = 0, failed, attributes = {} } = span
      const message = kind === CONSUMER ? ['kafka', attributes['messaging.destination.name']] : []
      add([byId.get(parent)?.service ?? '?', kind === CONSUMER ? 'message' : 'request', service, ...message], failed)
    }
    for (const { id, service, kind, failed, attributes = {} } of spans) {
      if ((kind !== CLIENT && kind !== PRODUCER) || parents.has(id)) continue
      if (attributes['db.system.name'])
        add([service, 'database', '?', 'postgresql', attributes['db.namespace']], failed)
      else if (kind === PRODUCER)
        add([service, 'queue', '?', 'kafka', attributes['messaging.destination.name']], failed)
      else add([service, 'request', '?', '', attributes['server.address']], failed)
    }
    expect(expected.size).toBeGreaterThan(100)
    const texts = [...expected].map(([key, { calls, errors }]) => [key, `${calls} calls, ${errors} errors`])
    expect(await edges()).toEqual(Object.fromEntries(texts))
  })

  it('have the durations of both sides, the slowest trace and the environment of the callee', async () => {
    await store([
      { trace: 1, id: 1, service: 'web', kind: CLIENT, durationNano: 5_000, environment: 'browser' },
      { trace: 1, id: 2, parent: 1, service: 'cart', kind: SERVER, durationNano: 3_000, environment: 'production' },
      { trace: 2, id: 1, service: 'web', kind: CLIENT, durationNano: 9_000 },
      { trace: 2, id: 2, parent: 1, service: 'cart', kind: SERVER, durationNano: 0, environment: 'production' },
    ])
    await count()
    const rows = await database.rows(`
      SELECT environment, duration_sum_nano, durations, caller_duration_sum_nano, caller_durations,
             service_edges.slowest.1 AS slowest, lower(hex(service_edges.slowest.2)) AS trace, toUnixTimestamp(minute) AS minute
      FROM service_edges WHERE workspace_id = '${workspaceId}' AND has_callee`)
    const counted = (...durations: number[]) => Object.fromEntries(durations.map(one => [bucketOfDuration(one), 1]))
    expect(rows).toEqual([
      {
        ...{ environment: 'production', duration_sum_nano: 3_000, durations: counted(3_000, 0) },
        ...{ caller_duration_sum_nano: 14_000, caller_durations: counted(5_000, 9_000) },
        ...{ slowest: 9_000, trace: hex(2, 32), minute: minuteMs / 1_000 },
      },
    ])
  })

  it('are none with a parent of the same process, and those of an SDK that does not say count', async () => {
    await store([
      { trace: 1, id: 1, service: 'web', kind: CLIENT },
      { trace: 1, id: 2, parent: 1, service: 'cart', kind: SERVER, flags: LOCAL },
      { trace: 1, id: 3, parent: 1, service: 'old', kind: SERVER, flags: 0 },
      { trace: 1, id: 4, service: 'root', kind: SERVER },
    ])
    await count()
    expect(await edges()).toEqual({ 'web request old': '1 calls, 0 errors' })
  })

  it('are never between two workspaces', async () => {
    const other = newId('ws')
    await store([{ trace: 1, id: 1, service: 'theirs', kind: CLIENT, attributes: { 'server.address': 'cart' } }], other)
    await store([{ trace: 1, id: 2, parent: 1, service: 'cart', kind: SERVER }])
    await count()
    expect(await edges()).toEqual({ '? request cart': '1 calls, 0 errors' })
    expect(await edges(other)).toEqual({ 'theirs request ?  cart': '1 calls, 0 errors' })
  })

  it('that were received are counted a minute after they are settled, and once when they are counted again', async () => {
    await store([
      { trace: 1, id: 1, service: 'web', kind: CLIENT, attributes: { 'peer.service': 'bank' }, failed: true },
      { trace: 1, id: 2, parent: 1, service: 'bank', kind: SERVER },
    ])
    await count(minuteMs + 2 * MINUTE_MS - 1)
    expect(await edges()).toEqual({ 'web request ?  bank': '1 calls, 1 errors' })
    for (let i = 0; i < 2; i++) {
      await redis.set(upkeepKeys.edgesBefore, minuteMs)
      await count()
    }
    expect(await edges()).toEqual({ 'web request bank': '1 calls, 1 errors' })
    expect(await redis.get(upkeepKeys.edgesBefore)).toBe(String(minuteMs + MINUTE_MS))
  })

  it('over a thousand of a surface are one', async () => {
    const names = Array.from({ length: 1_010 }, (_, i) => `service-${String(i).padStart(4, '0')}`)
    await store(names.map((service, i) => ({ trace: i + 1, id: 2, parent: 1, service, kind: SERVER })))
    await count()
    const found = await edges()
    expect(Object.keys(found)).toHaveLength(1_001)
    expect(found['other request other']).toBe('10 calls, 0 errors')
    expect(found['? request service-0999']).toBe('1 calls, 0 errors')
  })

  it.each([
    [{ 'db.system': 'redis', 'net.peer.name': 'cache' }, 'database ? redis cache'],
    [{ 'db.system.name': 'mysql', 'db.namespace': 'shop', 'server.address': 'db-1' }, 'database ? mysql shop'],
    [{ 'rpc.system': 'aws-api', 'rpc.service': 'S3' }, 'request ? aws-api S3'],
    [{ 'http.url': 'https://api.bank.example/v1/pay?card=1' }, 'request ?  api.bank.example'],
    [{ 'service.peer.name': 'bank', 'server.address': '10.0.0.1' }, 'request ?  bank'],
    [{ 'messaging.system': 'sqs' }, 'queue ? sqs'],
    [{}, 'request ?'],
  ])('of a client with %j lead to "%s"', async (attributes, expected) => {
    await store([{ trace: 1, id: 1, service: 'web', kind: CLIENT, attributes: attributes as Record<string, string> }])
    await count()
    expect(await edges()).toEqual({ [`web ${expected}`]: '1 calls, 0 errors' })
  })
})
