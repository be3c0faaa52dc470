import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { create, toBinary } from '@bufbuild/protobuf'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { type ClickHouseClient, insertNative } from '../../../clickhouse/client.ts'
import { selectReleaseFrameShare } from '../../../clickhouse/queries/releases/select-release-frame-share.ts'
import { FindingFramesTable } from '../../../clickhouse/tables/finding-frames-table.ts'
import { type FindingFrame, findingAnswerSchema } from '../../../schemas/http/findings/schemas.ts'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { QueueName } from '../../../schemas/queues/names.ts'
import type { SymbolicationRequest } from '../../../schemas/queues/symbolication.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { createObjectStore, type ObjectStore } from '../../../shared/object-store/object-store.ts'
import { encodePayload } from '../../../shared/queue/payload-frame.ts'
import { newJobId, queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { blocksOf } from '../../../workers/batch/row-batch.ts'
import { findingIdOf } from '../../../workers/exceptions/fingerprint.ts'
import { RedisPayloadStore } from '../../../workers/queue/payload-store.ts'
import { createJobAdder } from '../../../workers/queue/sweep.ts'
import { type BuiltApp, buildApp, ORIGINAL_FRAMES } from '../../support/pages/built-app.ts'
import {
  createDatabase,
  insertExceptions,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { type CountingProxy, startCountingProxy } from '../../support/services/counting-proxy.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { until } from '../../support/until.ts'
import { type ReleaseOwner, storeRelease } from '../../support/workspaces/store-release.ts'

const services = inject('services')
const redisUrl = `${services.redisUrl}/13`
const DATABASE = `symbolication_${process.pid}`
const OWNER: ReleaseOwner = { workspaceId: 'ws_1', surfaceId: 'srf_1' }
const logger = pino({ level: 'silent' })

let redis: Redis
let client: ClickHouseClient
let objects: ObjectStore
let api: TestApi
let token: string
let directory: string
let app: BuiltApp
let stores: { objects: ObjectStore; releases: ReturnType<typeof createReleaseStore> }
const opened: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  redis = connectConsumer(redisUrl, logger)
  await redis.flushdb()
  client = await createDatabase(services.clickhouseUrl, DATABASE)
  await putWorkspace(redisUrl, { id: 'ws_1', slug: 'acme' })
  await putWorkspace(redisUrl, { id: 'ws_2', slug: 'globex' })
  api = await startApi({ ...services, redisUrl }, DATABASE)
  token = await signToken()
  objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
  stores = { objects, releases: createReleaseStore(redis) }
  directory = await mkdtemp(join(tmpdir(), 'penstock-app-'))
  app = await buildApp('esbuild', directory, '1.0.0')
})

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

afterAll(async () => {
  await api?.stop()
  objects?.close()
  await client?.command({ query: `DROP DATABASE ${DATABASE} SYNC` })
  await client?.close()
  await redis?.flushdb()
  redis?.disconnect()
  await rm(directory, { recursive: true, force: true })
})

function workers(queues: readonly QueueName[] = ['spans', 'symbolication'], s3 = services.s3): TestPools {
  const pools = startPools(queues, { ...services, redisUrl, s3 }, DATABASE)
  opened.push(() => pools.stop())
  return pools
}

async function enqueue(queue: QueueName, owner: ReleaseOwner, body: Buffer): Promise<string> {
  const contentType = queue === 'spans' ? ('application/x-protobuf' as const) : ('application/json' as const)
  const frame = { ...owner, receivedAtMs: Date.now(), contentType, contentEncoding: 'identity' as const }
  const payload = encodePayload([{ ...frame, attributes: '', body }])
  const jobId = newJobId()
  await redis.set(queueKeys(queue).payload(jobId), payload)
  const jobs = createJobAdder(redis)
  await jobs.add(queue, [{ jobId, payload, frames: 1 }])
  await jobs.close()
  return jobId
}

/** The stack of the app's failure, in a script of this address. */
async function throwIn(url: string): Promise<string> {
  const scope: { shop?: { placeOrder(sku: string): Promise<number> } } = {}
  runInNewContext(await readFile(join(app.directory, app.script), 'utf8'), scope, { filename: url })
  return scope.shop?.placeOrder('pen').then(
    () => '',
    error => String(error.stack),
  ) as Promise<string>
}

interface Thrown {
  readonly stack: string
  readonly version?: string
  readonly service: string
  readonly debugIds?: Record<string, string>
}

/** Sends an exception on its way, and returns the id of its finding. */
async function send(thrown: Thrown, owner = OWNER): Promise<string> {
  await enqueueSpan(thrown, owner)
  return findingIdOf({ ...owner, serviceName: thrown.service, type: 'Error', message: '', stacktrace: thrown.stack })
}

function enqueueSpan({ stack, version, service, debugIds }: Thrown, owner: ReleaseOwner): Promise<string> {
  const text = (key: string, value: string) => ({
    key,
    value: { value: { case: 'stringValue' as const, value } },
  })
  const message = create(ExportTraceServiceRequestSchema, {
    resourceSpans: [
      {
        resource: {
          attributes: [
            text('service.name', service),
            ...(version === undefined ? [] : [text('service.version', version)]),
          ],
        },
        scopeSpans: [
          {
            spans: [
              {
                traceId: Buffer.from(randomUUID().replaceAll('-', ''), 'hex'),
                spanId: Buffer.from('00000000000000aa', 'hex'),
                name: 'order',
                events: [
                  {
                    name: 'exception',
                    timeUnixNano: BigInt(Date.now()) * 1_000_000n,
                    attributes: [
                      text('exception.type', 'Error'),
                      text('exception.stacktrace', stack),
                      ...(debugIds === undefined
                        ? []
                        : [
                            {
                              key: 'exception.debug_ids',
                              value: {
                                value: {
                                  case: 'kvlistValue' as const,
                                  value: { values: Object.entries(debugIds).map(([url, id]) => text(url, id)) },
                                },
                              },
                            },
                          ]),
                    ],
                  },
                ],
              },
            ],
          },
        ],
      },
    ],
  })
  return enqueue('spans', owner, Buffer.from(toBinary(ExportTraceServiceRequestSchema, message)))
}

async function mapsHaveArrived(slug: string, release: string, owner = OWNER): Promise<void> {
  const request: SymbolicationRequest = { kind: 'release', slug, release }
  await enqueue('symbolication', owner, Buffer.from(JSON.stringify(request)))
}

async function framesOf(findingId: string): Promise<FindingFrame[] | undefined> {
  const answer = await fetch(`${api.baseUrl}/v3/findings/${findingId}`, {
    headers: { authorization: `Bearer ${token}` },
  })
  if (answer.status === 404) return undefined
  expect(answer.status).toBe(200)
  return findingAnswerSchema.parse(await answer.json()).finding.frames
}

async function storedFrames(findingId: string): Promise<FindingFrame[]> {
  return until('frames are stored', async () => {
    const frames = await framesOf(findingId)
    return frames && frames.length > 0 ? frames : undefined
  })
}

async function resolvedFrames(findingId: string): Promise<FindingFrame[]> {
  return until('frames are resolved', async () => {
    const frames = await framesOf(findingId)
    return frames?.some(frame => frame.resolved) ? frames : undefined
  })
}

/** Stacks and releases that wait to be looked at; Redis names keys in no order that stays. */
const requests = async () => (await redis.keys(`${queueKeys('symbolication').payloadPrefix}*`)).sort()

const EXPECTED = ORIGINAL_FRAMES.map(frame => ({ ...frame, file: `src/${frame.file}`, resolved: true }))
const uploaded = () => ({ path: `${app.script}.map`, map: app.map })

describe('the frames of a finding', () => {
  it('are the original ones where the maps of the release are there', async () => {
    const url = `https://cdn.test/one/${app.script}`
    await storeRelease(stores, OWNER, '1.0.0', [{ ...uploaded(), chunkUrl: url }])
    workers()
    const stack = await throwIn(url)
    const findingId = await send({ stack, version: '1.0.0', service: 'one' })
    const frames = await resolvedFrames(findingId)
    expect(frames.slice(0, 4)).toMatchObject(EXPECTED)
    expect(frames[0]).toMatchObject({
      sourceLine: "throw new UnknownPriceError('no price of ' + sku + ' in ' + PRICES.size)",
      generated: { file: url, line: 1 },
    })
    // The test's own frames are behind those of the app.
    expect(frames.slice(4).every(frame => !frame.resolved)).toBe(true)
  })

  it('are those of the script until the maps arrive, which are then resolved again', async () => {
    const url = `https://cdn.test/late/${app.script}`
    workers()
    const findingId = await send({ stack: await throwIn(url), version: '2.0.0', service: 'late' })
    const before = await storedFrames(findingId)
    expect(before[0]).toMatchObject({ resolved: false, file: url, line: 1 })
    expect(before[0]).not.toHaveProperty('sourceLine')
    const slug = await storeRelease(stores, OWNER, '2.0.0', [{ ...uploaded(), chunkUrl: url }])
    const share = { workspaceId: 'ws_1', releaseSlug: slug }
    const total = (await selectReleaseFrameShare(client, share, AbortSignal.timeout(5_000))).totalFrames
    expect(total).toBeGreaterThanOrEqual(4)
    expect(await selectReleaseFrameShare(client, share, AbortSignal.timeout(5_000))).toMatchObject({
      resolvedFrames: 0,
    })
    await mapsHaveArrived(slug, '2.0.0')
    expect((await resolvedFrames(findingId)).slice(0, 4)).toMatchObject(EXPECTED)
    expect(await selectReleaseFrameShare(client, share, AbortSignal.timeout(5_000))).toEqual({
      resolvedFrames: 4,
      totalFrames: total,
    })
  })

  it('are found by the debug ids that the client sends, whatever its scripts are called', async () => {
    const debugId = randomUUID()
    const slug = await storeRelease(stores, OWNER, 'build-77', [{ ...uploaded(), debugId: debugId.toUpperCase() }])
    workers()
    await mapsHaveArrived(slug, 'build-77')
    await until('the debug id is known', async () => {
      const result = await client.query({ query: `SELECT 1 FROM source_maps WHERE debug_id = '${debugId}'` })
      return (await result.text()).includes('"rows": 1')
    })
    const url = 'https://proxy.test/scripts/0.js?v=3'
    const debugIds = { [url]: debugId.replaceAll('-', '') }
    const findingId = await send({ stack: await throwIn(url), service: 'by-id', debugIds })
    expect((await resolvedFrames(findingId)).slice(0, 4)).toMatchObject(EXPECTED)
  })

  it('are resolved again by debug id when the maps come later', async () => {
    const debugId = randomUUID()
    const url = 'https://proxy.test/scripts/1.js'
    workers()
    const stack = await throwIn(url)
    const findingId = await send({ stack, version: 'web-9', service: 'by-late-id', debugIds: { [url]: debugId } })
    expect((await storedFrames(findingId))[0]?.resolved).toBe(false)
    const slug = await storeRelease(stores, OWNER, 'build-78', [{ ...uploaded(), debugId }])
    await mapsHaveArrived(slug, 'build-78')
    expect((await resolvedFrames(findingId)).slice(0, 4)).toMatchObject(EXPECTED)
  })

  it("are never resolved by the maps of another workspace's or surface's release", async () => {
    const url = `https://cdn.test/foreign/${app.script}`
    const debugId = randomUUID()
    const foreign = [{ ...uploaded(), chunkUrl: url, debugId }]
    workers()
    for (const owner of [
      { workspaceId: 'ws_2', surfaceId: 'srf_1' },
      { workspaceId: 'ws_1', surfaceId: 'srf_2' },
    ]) {
      const slug = await storeRelease(stores, owner, '3.0.0', foreign)
      await mapsHaveArrived(slug, '3.0.0', owner)
    }
    await until('both are in the index', async () => {
      const result = await client.query({ query: `SELECT 1 FROM source_maps WHERE debug_id = '${debugId}'` })
      return (await result.text()).includes('"rows": 2')
    })
    const thrown = { stack: await throwIn(url), version: '3.0.0', service: 'foreign', debugIds: { [url]: debugId } }
    const frames = await storedFrames(await send(thrown))
    expect(frames.some(frame => frame.resolved)).toBe(false)
    // The same exception of the surface that they belong to is resolved by them.
    const own = await send(thrown, { workspaceId: 'ws_1', surfaceId: 'srf_2' })
    expect((await resolvedFrames(own)).slice(0, 4)).toMatchObject(EXPECTED)
  })

  it('wait for an object store that is away, and are resolved when it is back', async () => {
    const url = `https://cdn.test/away/${app.script}`
    await storeRelease(stores, OWNER, '4.0.0', [{ ...uploaded(), chunkUrl: url }])
    const gate: CountingProxy = await startCountingProxy(services.s3.endpoint)
    await gate.close()
    const pools = workers(['spans', 'symbolication'], { ...services.s3, endpoint: gate.url })
    const findingId = await send({ stack: await throwIn(url), version: '4.0.0', service: 'away' })
    await until('the finding is there', async () => (await framesOf(findingId)) !== undefined)
    await until('its stack waits', async () => (await requests()).length > 0)
    expect(await framesOf(findingId)).toEqual([])
    // The worker goes, another comes: what was asked for is still there.
    await pools.stop()
    opened.length = 0
    workers()
    expect((await resolvedFrames(findingId)).slice(0, 4)).toMatchObject(EXPECTED)
    await until('nothing is left to do', async () => (await requests()).length === 0)
  })

  it('stay resolved when a worker that saw no maps stores what it found last', async () => {
    const findingId = `fnd_${'r'.repeat(26)}`
    await insertExceptions(client, [{ findingId, traceId: '1'.padStart(32, '0') }])
    const place = { function: 'f', file: 'f.js', line: 1, column: 1 }
    const row = (file: string, sequence: number, resolvedFrameCount: number, occurredAtUnixNano: string) => ({
      ...OWNER,
      ...{
        findingId,
        serviceVersion: '1',
        releaseSlug: 'rel_rank',
        receivedAtMs: Date.now(),
        symbolicatedAtMs: Date.now(),
      },
      ...{ occurredAtUnixNano, sequence, frameCount: 3, resolvedFrameCount },
      frames: JSON.stringify([{ ...place, file, resolved: resolvedFrameCount > 0, generated: place }]),
    })
    // One table each, as they come from different workers.
    const rows = [row('second.ts', 5, 2, '2'), row('first.ts', 4, 3, '3'), row('none.js', 9, 0, '4')]
    for (const [i, stored] of rows.entries()) {
      const table = new FindingFramesTable()
      table.append(stored)
      for (const { table: name, columns, block } of blocksOf([table.buffer])) {
        await insertNative(client, { table: name, columns, block, deduplicationToken: `rank-${i}`, timeoutMs: 5_000 })
      }
    }
    const share = () =>
      selectReleaseFrameShare(client, { workspaceId: 'ws_1', releaseSlug: 'rel_rank' }, AbortSignal.timeout(5_000))
    for (let merged = 0; merged < 2; merged++) {
      expect((await framesOf(findingId))?.[0]?.file).toBe('second.ts')
      expect(await share()).toEqual({ resolvedFrames: 2, totalFrames: 3 })
      for (const table of ['finding_frames', 'release_frames']) {
        await client.command({ query: `OPTIMIZE TABLE ${DATABASE}.${table} FINAL` })
      }
    }
  })

  it('are resolved again of every finding of the release, page by page, and of no older one', async () => {
    const url = `https://cdn.test/many/${app.script}`
    const stack = await throwIn(url)
    const FINDINGS = 450
    await client.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, finding_id, service_version, source, stacktrace)
              SELECT 'ws_1', 'srf_1', now() - if(number < ${FINDINGS}, number % 80000, 90000),
                     'fnd_' || leftPad(toString(number), 26, 'm'), '8.0.0', 'log_record', {stack: String}
              FROM numbers(${FINDINGS + 50})`,
      query_params: { stack },
    })
    const slug = await storeRelease(stores, OWNER, '8.0.0', [{ ...uploaded(), chunkUrl: url }])
    workers(['symbolication'])
    await mapsHaveArrived(slug, '8.0.0')
    const share = () =>
      selectReleaseFrameShare(client, { workspaceId: 'ws_1', releaseSlug: slug }, AbortSignal.timeout(5_000))
    await until('all are resolved', async () => (await share()).resolvedFrames >= 4 * FINDINGS)
    await until('nothing is left to do', async () => (await requests()).length === 0)
    expect((await share()).resolvedFrames).toBe(4 * FINDINGS)
  })

  it('are not known of a request that is none, which goes to the dead letters', async () => {
    workers(['symbolication'])
    const jobId = await enqueue('symbolication', OWNER, Buffer.from('{"kind":"stack"}'))
    const letter = queueKeys('dead-letters').payload(`dead-${jobId}`)
    await until('it is a dead letter', async () => (await redis.exists(letter)) === 1)
    await until('nothing is left to do', async () => (await requests()).length === 0)
  })

  it('are asked for once, however often the finding is thrown', async () => {
    const stack = await throwIn(`https://cdn.test/often/${app.script}`)
    workers(['spans'])
    const sent = { stack, version: '5.0.0', service: 'often' }
    const findingId = await send(sent)
    await until('the first is stored', async () => (await framesOf(findingId)) !== undefined)
    await until('its stack is asked for', async () => (await requests()).length === 1)
    for (let i = 0; i < 3; i++) await send(sent)
    await until('all are stored', async () => {
      const query = `SELECT count() AS n FROM exceptions WHERE finding_id = '${findingId}'`
      const [row] = await (await client.query({ query, format: 'JSONEachRow' })).json<{ n: string }>()
      return Number(row?.n) === 4
    })
    expect(await requests()).toHaveLength(1)
  })

  it('are asked for by the worker that forms the batch of a dead one again', async () => {
    const stack = await throwIn(`https://cdn.test/dead/${app.script}`)
    const jobId = await enqueueSpan({ stack, version: '6.0.0', service: 'dead' }, OWNER)
    const batchId = randomUUID()
    await redis.set(queueKeys('spans').lock(jobId), 'token of the dead')
    expect(
      await new RedisPayloadStore(redis, 'spans').nameBatch(batchId, [{ jobId, token: 'token of the dead' }]),
    ).toEqual(new Map())
    await redis.del(queueKeys('spans').lock(jobId))
    workers(['spans'])
    const request = queueKeys('symbolication').payload(`stacks-${batchId}`)
    await until('its stack is asked for', async () => (await redis.exists(request)) === 1)
  })

  it('are not asked for while symbolication is far behind; the exception is stored all the same', async () => {
    const { flow } = queueKeys('symbolication')
    const before = await requests()
    await redis.hincrby(flow, 'acceptedBytes', 256 * 1024 * 1024)
    opened.push(() => redis.hincrby(flow, 'acceptedBytes', -256 * 1024 * 1024))
    workers(['spans'])
    const stack = await throwIn(`https://cdn.test/behind/${app.script}`)
    const findingId = await send({ stack, version: '7.0.0', service: 'behind' })
    await until('the finding is there', async () => (await framesOf(findingId)) !== undefined)
    await until(
      'its payload is done',
      async () => (await redis.keys(`${queueKeys('spans').payloadPrefix}*`)).length === 0,
    )
    expect(await requests()).toEqual(before)
  })
})
