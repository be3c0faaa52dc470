import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { EXAMPLE } from '../../schemas/http/example-values.ts'
import { QUEUES } from '../../schemas/queues/names.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import { type OpenApiJson, readDescription } from '../support/clients/described-service.ts'
import { encodeReplayMetadata } from '../support/clients/encode-replay-metadata.ts'
import { PROTOBUF } from '../support/hostile/attacker.ts'
import { spanWith } from '../support/hostile/bodies.ts'
import { bombs, chunkBombs } from '../support/hostile/bombs.ts'
import type { FuzzRequest } from '../support/hostile/fuzz-queries.ts'
import { createFuzzRequests, type FuzzMaterial } from '../support/hostile/fuzz-requests.ts'
import { type FuzzInput, FuzzRun } from '../support/hostile/fuzz-run.ts'
import { rawBytes, speak } from '../support/hostile/fuzz-sockets.ts'
import { MemoryTrend, MOST_GROWTH, openFiles, residentBytes } from '../support/hostile/memory-trend.ts'
import {
  type AttackReport,
  expectAlive,
  type SmallService,
  startSmallService,
} from '../support/hostile/small-service.ts'
import { until } from '../support/until.ts'

const CONNECTIONS = 24
const SOCKETS = 8
/**
 * Outcomes without a fault of the service. 503 states that something is unavailable, 505 that the version of HTTP is
 * unknown. A connection may be closed without an answer if its client sends bytes by itself.
 */
const HARMLESS = /^([1-4]\d\d|503|505|closed)$/
/** A request that has no response after this time hangs. */
const HANG_MS = 60_000
const MOST_FAULTS = 10
/**
 * Time until the code of the processes is compiled, and their heaps and buffers have the size that they keep. Every bomb is
 * sent in it beside other requests, because the allocator keeps some of the memory that they need together.
 */
const WARM_UP_MS = 60_000
const SETTLED_WITHIN_MS = 120_000
/** Part of the responses that may be 503, for commits that miss their deadline on a busy machine. */
const MOST_UNAVAILABLE = 0.01
/** Descriptors that a process may have opened during a run, for connections to its stores. */
const MORE_FILES = 40
const ERROR_LEVEL = 50
const PROCESSES = ['edge', 'workers', 'api'] as const

/** Reasons of dead letters that state a fault of the service, not of the request. */
const FAULTS_OF_SERVICE = [
  'decoder_fault',
  'killed_worker',
  'INTERNAL',
  'refused_by_clickhouse',
  'refused_by_object_store',
]

let service: SmallService
let redis: Redis
const lines: string[] = []
beforeAll(async () => {
  service = await startSmallService({ log: line => lines.push(line) })
  redis = new Redis(service.stack.services.redisUrl)
})
afterAll(async () => {
  redis?.disconnect()
  await service?.stop()
})

it('no request crashes, hangs or swells a process, or is answered with an internal error', async () => {
  const run = new FuzzRun({ ofTime: 0.7, ofCount: 0.1 })
  const faults: string[] = []
  const { attacker } = service
  const document = (await (await fetch(`${attacker.edgeUrl}/openapi.json`)).json()) as OpenApiJson
  const material = {
    ...{ seed: run.seed, attacker, stored: await storeStory() },
    ...{ liarKey: await addSurface('liar'), bomberKey: await addSurface('bomber') },
    ...{ operations: readDescription(document).operations, bombs: bombs(), chunkBombs: chunkBombs() },
  }
  const requests = createFuzzRequests(material)
  const ports = [attacker.edgePort, Number(new URL(attacker.apiUrl).port)]

  function ended(kind: string, { index }: FuzzInput, outcome: string, text = ''): void {
    run.ended(kind, outcome)
    if (!HARMLESS.test(outcome)) faults.push(`${kind}, seed ${run.seed}, input ${index}: ${outcome} ${text}`)
  }

  async function sendRequests(): Promise<void> {
    for (let input = run.next(); input !== undefined && faults.length < MOST_FAULTS; input = run.next()) {
      const sent = requests.next(input.random)
      for (const request of sent.requests) {
        const { outcome, text } = await send(request)
        ended(sent.kind, input, outcome, text)
        if (outcome === '201') requests.learn(sent.kind, text)
      }
    }
  }

  async function sendBytes(): Promise<void> {
    for (let input = run.next(); input !== undefined && faults.length < MOST_FAULTS; input = run.next()) {
      const { random } = input
      const [request] = requests.ofOperation(random).requests
      if (request === undefined) throw new Error('unreachable: an input without a request')
      const pieces = rawBytes(attacker.tenant.publicKey, request, random)
      ended('bytes', input, await speak(ports[random() < 0.7 ? 0 : 1] as number, pieces))
    }
  }

  const memory = Object.fromEntries(
    [...PROCESSES, 'tracer' as const].map(name => [name, new MemoryTrend(() => residentBytes(pidOf(name)))]),
  )
  let filesBefore: readonly number[] = []
  const report = await service.during(async () => {
    const sampling = setTimeout(() => {
      for (const trend of Object.values(memory)) trend.start()
    }, WARM_UP_MS)
    filesBefore = PROCESSES.map(name => openFiles(pidOf(name)))
    await Promise.all([
      explodeAll(material),
      ...Array.from({ length: CONNECTIONS }, sendRequests),
      ...Array.from({ length: SOCKETS }, sendBytes),
    ])
    clearTimeout(sampling)
    for (const trend of Object.values(memory)) trend.stop()
  })
  console.log(
    [
      `seed ${run.seed}: ${run.done} inputs through edge and API in ${Math.round(run.elapsedMs / 1_000)} s`,
      ...Object.entries(memory).map(([name, trend]) => `${name} ${trend}`),
      ...Object.entries(run.outcomes).map(([kind, outcomes]) => `${kind}: ${JSON.stringify(outcomes)}`),
      `dead letters: ${JSON.stringify(await deadLetters())}`,
    ].join('\n'),
  )
  expect(faults).toEqual([])
  expect(lines.filter(isErrorLine)).toEqual([])
  expect(shareOf(run, '503')).toBeLessThanOrEqual(MOST_UNAVAILABLE)
  expectAlive(report)
  expectAccepted(report)
  await until('no payload waits', async () => (await waiting()) === 0, { deadlineMs: SETTLED_WITHIN_MS })
  expect(Object.keys(await deadLetters()).filter(reason => FAULTS_OF_SERVICE.includes(reason))).toEqual([])
  for (const [i, name] of PROCESSES.entries()) {
    expect(openFiles(pidOf(name)), `open files of ${name}`).toBeLessThan((filesBefore[i] ?? 0) + MORE_FILES)
  }
  for (const [name, trend] of Object.entries(memory)) {
    if (trend.isLong) expect(trend.growth, name).toBeLessThanOrEqual(MOST_GROWTH)
  }
}, 4_000_000)

/** Returns the id of a process. The tracer is the child of the workers that parses source maps. */
function pidOf(name: (typeof PROCESSES)[number] | 'tracer'): number {
  if (name !== 'tracer') return service.stack[name].pid
  const { pid } = service.stack.workers
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [child] = readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ')
    if (child) return Number(child)
  }
  return 0
}

async function send({ url, method, headers, body }: FuzzRequest): Promise<{ outcome: string; text: string }> {
  const abort = AbortSignal.timeout(HANG_MS)
  try {
    const response = await fetch(url, { method, headers, signal: abort, ...(body !== undefined && { body }) })
    return { outcome: String(response.status), text: await response.text() }
  } catch (error) {
    const { cause, name, message } = error as Error
    return { outcome: (cause as NodeJS.ErrnoException | undefined)?.code ?? name, text: `${message} ${cause}` }
  }
}

/** Creates another surface of the attacker's workspace, and returns its public key. */
async function addSurface(name: string): Promise<string> {
  const { apiUrl, tenant } = service.attacker
  const create = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${tenant.sessionToken}`, 'content-type': 'application/json' }
    const response = await fetch(apiUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return response.text()
  }
  const surfaceId = /srf_[0-9a-f]+/.exec(await create('/v3/surfaces', { name }))?.[0]
  const key = await create(`/v3/surfaces/${surfaceId}/keys`, { kind: 'public' })
  const secret = /"secret":"(pk_[^"]+)"/.exec(key)?.[1]
  if (secret === undefined) throw new Error(`a key was not created: ${key}`)
  return secret
}

/** Sends every bomb twice. */
async function explodeAll({ bombs, chunkBombs, bomberKey }: FuzzMaterial): Promise<void> {
  const { attacker } = service
  for (let times = 0; times < 2; times++) {
    for (const { otlpSignal, contentType, encoding, body } of bombs) {
      const headers = { 'x-service-public-key': bomberKey, 'content-type': contentType, 'content-encoding': encoding }
      await attacker.post(`/drain/v1/${otlpSignal}`, body, headers)
    }
    for (const [i, body] of chunkBombs.entries()) {
      const metadata = encodeReplayMetadata({ windowId: 'w', segmentId: i, firstTs: 1, lastTs: 2 })
      const headers = { 'x-service-public-key': bomberKey, 'x-replay-metadata': metadata, 'content-encoding': 'gzip' }
      await attacker.post(`/v3/replay/upload/bomb${times}`, body, headers)
    }
  }
}

/** Stores a release, a failed span and its finding, and a metric, to which the examples of the document then refer. */
async function storeStory(): Promise<FuzzMaterial['stored']> {
  const { attacker } = service
  const { surfaceId, workspaceId, slug } = attacker.tenant
  const version = randomBytes(8).toString('hex')
  const releaseSlug = await attacker.builds.register(version)
  const span = spanWith({ version, sessionId: EXAMPLE.sessionId, exception: { type: 'E', message: 'x' } })
  const response = await fetch(`${attacker.edgeUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { ...PROTOBUF, 'x-service-public-key': attacker.tenant.publicKey },
    body: new Uint8Array(span),
  })
  const receiptId = response.headers.get('x-receipt-id') ?? ''
  const attributes = Object.entries({ 'http.request.method': 'GET', 'http.route': '/cart' }).map(
    ([key, stringValue]) => ({ key, value: { stringValue } }),
  )
  const times = {
    startTimeUnixNano: `${EXAMPLE.recordedAtMs - 10_000}000000`,
    timeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
  }
  const point = { ...times, attributes, count: '1', sum: 0.042, explicitBounds: [0.05], bucketCounts: ['1', '0'] }
  const histogram = { aggregationTemporality: 1, dataPoints: [point] }
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: EXAMPLE.serviceName } }] }
  const metrics = [{ name: EXAMPLE.metricName, unit: 's', histogram }]
  await fetch(`${attacker.edgeUrl}/drain/v1/metrics`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-public-key': attacker.tenant.publicKey },
    body: JSON.stringify({ resourceMetrics: [{ resource, scopeMetrics: [{ metrics }] }] }),
  })
  const read = async (path: string) => {
    const headers = { authorization: `Bearer ${attacker.tenant.sessionToken}` }
    return (await fetch(attacker.apiUrl + path, { headers })).text()
  }
  let findingId: string | undefined
  await until('the finding is stored', async () => {
    findingId = /fnd_[a-z0-9]+/.exec(await read(`/v3/findings?surface=${surfaceId}`))?.[0]
    return findingId !== undefined
  })
  const traceId = /"traceId":"([0-9a-f]{32})"/.exec(await read(`/v3/findings/${findingId}/traces`))?.[1]
  if (findingId === undefined || traceId === undefined) throw new Error('a finding has no trace')
  return {
    [EXAMPLE.receiptId]: receiptId,
    [EXAMPLE.surfaceId]: surfaceId,
    [EXAMPLE.workspaceId]: workspaceId,
    [`/${EXAMPLE.workspaceSlug}/`]: `/${slug}/`,
    [EXAMPLE.releaseSlug]: releaseSlug,
    [EXAMPLE.findingId]: findingId,
    [EXAMPLE.traceId]: traceId,
  }
}

/** Returns the number of payloads that are not settled, in all queues. */
async function waiting(): Promise<number> {
  const counts = await Promise.all(QUEUES.map(queue => redis.zcard(queueKeys(queue).pending)))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Returns the reasons of the dead letters and how many there are. */
async function deadLetters(): Promise<Record<string, number>> {
  const query = 'SELECT reason, toUInt32(count()) AS letters FROM dead_letters GROUP BY reason ORDER BY reason'
  const result = await service.clickhouse.query({ query, format: 'JSONEachRow' })
  const rows = await result.json<{ reason: string; letters: number }>()
  return Object.fromEntries(rows.map(({ reason, letters }) => [reason, letters]))
}

/** Expects that no other client was refused anything for the load, whatever the attacker sent. */
function expectAccepted({ victims }: AttackReport): void {
  for (const { name, refused } of victims) {
    const rejected = Object.keys(refused).filter(outcome => / 4\d\d$/.test(outcome))
    expect({ name, rejected }).toEqual({ name, rejected: [] })
  }
}

/** Returns the part of the outcomes that is this one. */
function shareOf({ outcomes }: FuzzRun, outcome: string): number {
  const all = Object.values(outcomes)
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
  return sum(all.map(counts => counts[outcome] ?? 0)) / Math.max(1, sum(all.flatMap(Object.values<number>)))
}

/** Returns true for a log entry of level error or above, and for what a process prints when it ends by an exception. */
function isErrorLine(line: string): boolean {
  const level = /"level":(\d+)/.exec(line)?.[1]
  return level === undefined ? /Uncaught|Unhandled|FATAL|Error:|Warning:/.test(line) : Number(level) >= ERROR_LEVEL
}
