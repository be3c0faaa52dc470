import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { freePort } from '../../deploy/local/ports.ts'
import { readStack } from '../../shared/stacks/read-stack.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const ROOT = join(import.meta.dirname, '../..')
const ENTRY = join(ROOT, 'packages/node/src/index.ts')
const APPS = join(ROOT, 'test/support/node-sdk')

/** Throws an error with two causes, one within the other, from a timer. */
const CRASHING_APP = `
console.log('begin')
setTimeout(() => {
  const disk = new RangeError('disk is full')
  const store = new Error('cannot store', { cause: disk })
  throw new TypeError('cannot order', { cause: store })
}, 10)
process.on('exit', code => console.log('exit', code))
`

let stack: Stack
let clickhouse: ClickHouseClient
let folder: string

beforeAll(async () => {
  stack = await startStack()
  clickhouse = createClickHouse({ url: stack.services.clickhouseUrl, database: 'penstock' })
  folder = await realpath(await mkdtemp(join(tmpdir(), 'penstock-node-')))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'crash-shop', version: '4.5.6' }))
  await writeFile(join(folder, 'crash.mjs'), CRASHING_APP)
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
  await clickhouse?.close()
  await stack?.stop()
})

it('traces a request from client to server, with logs of every logger in the trace and metrics of the runtime', async () => {
  const service = 'instrumented shop'
  const { code } = await run(join(APPS, 'shop.mjs'), { ...destination(), OTEL_SERVICE_NAME: service })
  expect(code).toBe(0)
  const spans = await rows<{ name: string; kind: number; trace: string; id: string; parent: string }>(
    `SELECT name, kind, lower(hex(trace_id)) AS trace, lower(hex(span_id)) AS id, lower(hex(parent_span_id)) AS parent
     FROM spans WHERE service_name = {service: String}`,
    service,
    found => found.length > 0,
  )
  const visit = spans.find(({ name }) => name === 'visit')
  const client = spans.filter(({ kind }) => kind === 3)
  const server = spans.filter(({ kind }) => kind === 2)
  expect(new Set(spans.map(({ trace }) => trace))).toEqual(new Set([visit?.trace]))
  expect(client.map(({ name, parent }) => [name, parent])).toEqual([
    ['GET', visit?.id],
    ['GET', visit?.id],
  ])
  expect(server.map(({ name }) => name).sort()).toEqual(['GET /fail', 'GET /items/:id'])
  expect(server.map(({ parent }) => parent).sort()).toEqual(client.map(({ id }) => id).sort())
  expect(spans.filter(({ name }) => name.startsWith('request handler'))).toHaveLength(2)

  const logs = await rows<{ body: string; severity: number; trace: string }>(
    `SELECT body, severity_number AS severity, lower(hex(trace_id)) AS trace FROM logs WHERE service_name = {service: String}`,
    service,
    found => found.length >= 6,
  )
  const records = Object.fromEntries(logs.map(({ body, severity, trace }) => [body, [severity, trace]]))
  expect(records).toMatchObject({
    'pino loads the item': [9, visit?.trace],
    'winston finds it old': [13, visit?.trace],
    'the console has an error of its own': [17, visit?.trace],
    'pino reports': [17, visit?.trace],
    'winston reports': [17, visit?.trace],
  })
  // Express writes the error to the console once more.
  expect(logs).toHaveLength(6)

  const metrics = await rows<{ name: string }>(
    'SELECT DISTINCT metric_name AS name FROM metric_points WHERE service_name = {service: String}',
    service,
    found => found.length > 0,
  )
  expect(metrics.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['nodejs.eventloop.utilization', 'v8js.memory.heap.used', 'http.server.request.duration']),
  )
  const exceptions = await exceptionsOf(service, 3)
  for (const { stacktrace } of exceptions) expect(typesOf(stacktrace)).toEqual(['TypeError', 'RangeError'])
  expect(new Set(exceptions.map(({ finding }) => finding)).size).toBe(1)
})

it('reports an uncaught exception with its causes, and changes neither output nor exit code', async () => {
  const script = join(folder, 'crash.mjs')
  const plain = await run(script, {}, [])
  expect(plain).toMatchObject({ code: 1, stdout: 'begin\nexit 1\n' })
  expect(await run(script, { ...destination(), PENSTOCK_ENVIRONMENT: 'staging' })).toEqual(plain)
  const [exception] = await exceptionsOf('crash-shop', 1)
  expect(exception).toMatchObject({
    type: 'TypeError',
    message: 'cannot order',
    version: '4.5.6',
    environment: 'staging',
  })
  expect(typesOf(exception?.stacktrace ?? '')).toEqual(['TypeError', 'Error', 'RangeError'])
  expect(exception?.top).toContain('crash.mjs')
})

it('sends by another protocol of the SDK too', async () => {
  const service = 'shop by gRPC'
  const grpc = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_ENDPOINT: stack.grpcUrl }
  const headers = { OTEL_EXPORTER_OTLP_HEADERS: `x-service-public-key=${stack.secrets.publicKey}` }
  const { code } = await run(join(APPS, 'shop.mjs'), { ...grpc, ...headers, OTEL_SERVICE_NAME: service })
  expect(code).toBe(0)
  const exceptions = await exceptionsOf(service, 3)
  for (const { stacktrace } of exceptions) expect(typesOf(stacktrace)).toEqual(['TypeError', 'RangeError'])
  await until('the logs are stored', async () => (await logsOf(service)).length === 6)
})

it('sends while it runs, without tracing itself, and sends the rest before a signal ends it', async () => {
  const service = 'waiting shop'
  const often = {
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_BLRP_SCHEDULE_DELAY: '60000',
    OTEL_METRIC_EXPORT_INTERVAL: '100',
  }
  const child = start(join(APPS, 'waiting.ts'), { ...destination(), ...often, OTEL_SERVICE_NAME: service })
  let output = ''
  child.stdout.on('data', chunk => {
    output += chunk
  })
  const ports = `SELECT name, kind FROM spans WHERE service_name = {service: String}`
  await rows(ports, service, found => found.length > 0)
  // Several exports of metrics have passed by then, each of which would be a span of a client.
  await rows(
    'SELECT DISTINCT time_unix_nano FROM metric_points WHERE service_name = {service: String}',
    service,
    found => found.length > 5,
  )
  child.stdin.write('speak\n')
  await until('the line is written', () => output === 'answered\nthe last words\n')
  expect(await logsOf(service)).toEqual([])
  child.kill('SIGTERM')
  const [code, signal] = await once(child, 'exit')
  expect({ code, signal }).toEqual({ code: null, signal: 'SIGTERM' })
  await until('the logs are stored', async () => (await logsOf(service)).length === 2)
  expect((await rows<{ kind: number }>(ports, service, () => true)).map(({ kind }) => kind).sort()).toEqual([2, 3])
  const clients = await rows<{ count: number }>(
    `SELECT uniqExact(series_id) AS count FROM metric_points
     WHERE service_name = {service: String} AND metric_name = 'http.client.request.duration'`,
    service,
    () => true,
  )
  expect(clients).toEqual([{ count: 1 }])
})

it('warns once without settings, and leaves the program alone', async () => {
  const script = join(folder, 'crash.mjs')
  const plain = await run(script, {}, [])
  const without = await run(script, {})
  expect(without).toEqual({
    ...plain,
    stderr: `penstock: no telemetry is sent: set PENSTOCK_URL and PENSTOCK_KEY, or OTEL_EXPORTER_OTLP_ENDPOINT\n${plain.stderr}`,
  })
})

it('ends a program in time while the service is unavailable or does not answer', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const script = join(folder, 'crash.mjs')
  const plain = await run(script, {}, [])
  for (const [name, url] of [
    ['away', `http://127.0.0.1:${await freePort()}`],
    ['silent', `http://127.0.0.1:${port}`],
  ] as const) {
    const startedAt = performance.now()
    expect(await run(script, { ...destination(), PENSTOCK_URL: url }), name).toEqual(plain)
    // Three seconds are for the records; the rest is the start on a busy machine.
    expect(performance.now() - startedAt, name).toBeLessThan(10_000)
  }
  // Its first records are on their way, and are sent again and again, when it has nothing left to do.
  await writeFile(join(folder, 'busy.mjs'), "console.log('begin'); setTimeout(() => console.log('end'), 2_500)")
  const startedAt = performance.now()
  const busy = await run(join(folder, 'busy.mjs'), {
    ...destination(),
    PENSTOCK_URL: `http://127.0.0.1:${await freePort()}`,
  })
  expect(busy).toEqual({ code: 0, stdout: 'begin\nend\n', stderr: '' })
  expect(performance.now() - startedAt).toBeLessThan(8_500)
  silent.close()
})

function destination(): Record<string, string> {
  return { PENSTOCK_URL: stack.ingestUrl, PENSTOCK_KEY: stack.secrets.publicKey }
}

function start(script: string, env: Record<string, string>, options: readonly string[] = ['--import', ENTRY]) {
  return spawn(process.execPath, [...options, script], { env: { PATH: process.env.PATH, ...env }, cwd: ROOT })
}

async function run(script: string, env: Record<string, string>, options?: readonly string[]) {
  const child = start(script, env, options)
  child.stdin.end()
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code, stdout, stderr }
}

interface ExceptionRow {
  type: string
  message: string
  stacktrace: string
  version: string
  environment: string
  finding: string
  top: string
}

function exceptionsOf(service: string, count: number): Promise<ExceptionRow[]> {
  return rows(
    `SELECT type, message, stacktrace, service_version AS version, environment, finding_id AS finding, top_frame AS top
     FROM exceptions WHERE service_name = {service: String}`,
    service,
    found => found.length >= count,
  )
}

async function logsOf(service: string): Promise<string[]> {
  const found = await rows<{ body: string }>(
    'SELECT body FROM logs WHERE service_name = {service: String}',
    service,
    () => true,
  )
  return found.map(({ body }) => body)
}

/** Returns the types of a chain as the service reads it. */
function typesOf(stacktrace: string): string[] {
  return readStack(stacktrace).links.map(({ type }) => type)
}

function rows<Row>(query: string, service: string, areComplete: (rows: Row[]) => boolean): Promise<Row[]> {
  return until(`rows of ${service}`, async () => {
    const result = await clickhouse.query({ query, query_params: { service }, format: 'JSONEachRow' })
    const found = await result.json<Row>()
    return areComplete(found) ? found : undefined
  })
}
