import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { load } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { OTEL_SNIPPETS, otelSettings } from '../../console/onboarding/snippets.ts'
import { freePort } from '../../deploy/local/ports.ts'
import { type ChildProcess, startChild } from '../../deploy/local/processes/child-process.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import type { ClientName } from '../support/clients/client-programs.ts'
import { type Recorder, startRecorder } from '../support/clients/recorder.ts'
import { runSnippet } from '../support/clients/run-snippet.ts'
import { type ComparableRows, recordedRows, storedRows } from '../support/oracles/recorded-rows.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

let stack: Stack
let clickhouse: ClickHouseClient
let recorder: Recorder

beforeAll(async () => {
  stack = await startStack()
  clickhouse = createClickHouse({ url: stack.services.clickhouseUrl, database: 'penstock' })
  recorder = await startRecorder(stack)
})

afterAll(async () => {
  await recorder?.close()
  await clickhouse?.close()
  await stack?.stop()
})

const run = promisify(execFile)
const CLIENT_DEADLINE_MS = MINUTE_MS
const PROTOCOLS = ['http/protobuf', 'http/json', 'grpc'] as const
type Protocol = (typeof PROTOCOLS)[number]

/** Ways to send everything as this service, to the address of a protocol. Each resolves when all of it is acknowledged. */
type Send = (protocol: Protocol, service: string) => Promise<void>

const SENDERS: Record<ClientName, { send: Send; protocols: readonly Protocol[]; lacks?: readonly string[] }> = {
  javascript: { protocols: PROTOCOLS, send: runSdk('javascript') },
  python: { protocols: ['http/protobuf', 'grpc'], send: runSdk('python') },
  go: { protocols: ['http/protobuf', 'grpc'], send: runSdk('go') },
  java: { protocols: ['http/protobuf', 'grpc'], send: runSdk('java') },
  collector: { protocols: PROTOCOLS, send: runCollector },
  telemetrygen: {
    protocols: ['http/protobuf', 'grpc'],
    send: runTelemetrygen,
    lacks: [
      'an event',
      'an exception',
      'a message of a status',
      'text beyond ASCII',
      'attributes array',
      'attributes double',
    ],
  },
}

/** Features of what is sent, each with the rows of a table that show it. Most clients send all of them. */
const FEATURES: Readonly<Record<string, [keyof ComparableRows, RegExp]>> = {
  'an event': ['spans', /"events":\[\{/],
  'a link': ['spans', /"links":\[\{/],
  'a message of a status': ['spans', /"status_message":"[^"]/],
  'an exception': ['exceptions', /./],
  'text beyond ASCII': ['logs', /ZÃ¼rich/],
  'attributes string': ['spans', /"attribute_types":\[[\d,]*\b1\b/],
  'attributes bool': ['spans', /"attribute_types":\[[\d,]*\b2\b/],
  'attributes int': ['spans', /"attribute_types":\[[\d,]*\b3\b/],
  'attributes double': ['spans', /"attribute_types":\[[\d,]*\b4\b/],
  'attributes array': ['spans', /"attribute_types":\[[\d,]*\b5\b/],
  'a trace of a log': ['logs', /"trace_id":"(?!0{32})/],
  'a gauge': ['metric_points', /"type":1\b/],
  'a sum': ['metric_points', /"type":2\b/],
  'a histogram': ['metric_points', /"type":3\b/],
  'an exponential histogram': ['metric_points', /"type":4\b/],
}

describe.each(Object.entries(SENDERS))('what %s sends by its defaults', (name, { protocols, send, lacks = [] }) => {
  it.skipIf('missing' in inject('clients')[name as ClientName]).each(protocols)(
    'as %s is stored with every field',
    async protocol => {
      const service = `${name} ${protocol}`
      await send(protocol, service)
      const { exports, refusals } = recorder.take()
      expect(refusals).toEqual([])
      const { workspaceId, surfaceId } = stack.secrets
      const expected = recordedRows({ workspaceId, surfaceId }, exports)
      const shown = Object.entries(FEATURES).filter(([, [table, sign]]) => expected[table].some(row => sign.test(row)))
      expect(shown.map(([feature]) => feature)).toEqual(Object.keys(FEATURES).filter(key => !lacks.includes(key)))
      const stored = await until('every row is stored', async () => {
        const rows = await storedRows(clickhouse, service)
        return count(rows) >= count(expected) ? rows : undefined
      })
      expect(stored).toEqual(expected)
    },
  )
})

/** Runs a file of Go within the module of the client, whose packages are there. */
const GO = `case "$1" in mod) ;; *) exec "$REAL_GO" run -C "$GO_MODULE" "$PWD/main.go" ;; esac`

describe('an example of the console', () => {
  it.skipIf('missing' in inject('clients').python)('for Python sends a span', () =>
    sendsSpan('python', { pip: 'exit 0' }),
  )
  it.skipIf('missing' in inject('clients').go)('for Go sends a span', () => sendsSpan('go', { go: GO }))
  it.skipIf('missing' in inject('clients').collector)('configures the Collector', async () => {
    const { exporters } = load(textOf('collector')) as { exporters: { otlphttp: object } }
    const [name, folder] = ['otlphttp/example', await mkdtemp(join(tmpdir(), 'penstock-collector-'))]
    const file = join(folder, 'example.json')
    await writeFile(file, JSON.stringify({ exporters: { [name]: exporters.otlphttp } }))
    await runCollector('http/protobuf', 'by the example', { name, file })
    await untilReceived()
    await rm(folder, { recursive: true })
  })
})

function textOf(id: string): string {
  const { httpUrl: endpoint } = recorder
  const snippet = OTEL_SNIPPETS.find(each => each.id === id)
  return snippet?.text({ endpoint, publicKey: stack.secrets.publicKey }) ?? ''
}

async function sendsSpan(name: 'python' | 'go', replaced: Record<string, string>): Promise<void> {
  const { env } = program(name)
  const module = join(import.meta.dirname, 'go')
  const { stdout } = name === 'go' ? await run('sh', ['-c', 'command -v go']) : { stdout: '' }
  await runSnippet(textOf(name), replaced, { ...env, GO_MODULE: module, REAL_GO: stdout.trim() })
  await untilReceived()
}

/** Waits until the recorder has received an export, which must not be refused. */
async function untilReceived(): Promise<void> {
  const { exports, refusals } = await until('an export is received', () => {
    const taken = recorder.take()
    return taken.exports.length > 0 || taken.refusals.length > 0 ? taken : undefined
  })
  expect([exports.length > 0, refusals]).toEqual([true, []])
}

function count(rows: ComparableRows): number {
  return Object.values(rows).reduce((sum, table) => sum + table.length, 0)
}

/** Returns the program of a client that is there. */
function program(name: ClientName): { command: string; args: readonly string[]; env: NodeJS.ProcessEnv } {
  const client = inject('clients')[name]
  if ('missing' in client) throw new Error(`no client ${name}: ${client.missing}`)
  const [command = '', ...args] = client.command
  return { command, args, env: { PATH: process.env.PATH, HOME: process.env.HOME, ...client.env } }
}

/** Runs a program of an SDK, which reads the address, the key and its name from the variables of OpenTelemetry. */
function runSdk(name: ClientName): Send {
  return async (protocol, service) => {
    const { publicKey } = stack.secrets
    // The settings that the console shows. Over gRPC the key is sent in another way too.
    const shown = otelSettings({ endpoint: addressOf(protocol), publicKey })
    const key = protocol === 'grpc' ? { OTEL_EXPORTER_OTLP_HEADERS: `api-key=${publicKey}` } : {}
    await runClient(name, [], {
      ...shown,
      ...key,
      OTEL_SERVICE_NAME: service,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    })
  }
}

async function runClient(name: ClientName, more: readonly string[], settings: Record<string, string>): Promise<void> {
  const { command, args, env } = program(name)
  await run(command, [...args, ...more], { env: { ...env, ...settings }, timeout: CLIENT_DEADLINE_MS })
}

function addressOf(protocol: Protocol): string {
  return protocol === 'grpc' ? recorder.grpcUrl : recorder.httpUrl
}

/**
 * Sends with the SDK of JavaScript to a Collector, whose exporter sends it on: one of its own, or one of another file. A Collector
 * that is stopped sends what it has.
 */
async function runCollector(protocol: Protocol, service: string, more?: { name: string; file: string }): Promise<void> {
  const { command, env } = program('collector')
  const port = await freePort()
  const lines: string[] = []
  const collector: ChildProcess = await startChild({
    command,
    args: ['--config', join(import.meta.dirname, 'collector/collector.yaml'), ...(more ? ['--config', more.file] : [])],
    env: {
      ...env,
      COLLECTOR_PORT: String(port),
      EXPORTER: more?.name ?? { grpc: 'otlp', 'http/protobuf': 'otlphttp', 'http/json': 'otlphttp/json' }[protocol],
      EXPORT_ENDPOINT: addressOf(protocol),
      EXPORT_KEY: stack.secrets.publicKey,
    },
    log: line => lines.push(line),
  })
  try {
    await until('the Collector is ready', () => {
      if (collector.hasExited) throw new Error(`the Collector has ended:\n${lines.join('\n')}`)
      return lines.some(line => line.includes('Everything is ready'))
    })
    await runClient('javascript', [], {
      OTEL_SERVICE_NAME: service,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    })
  } finally {
    await collector.stop(CLIENT_DEADLINE_MS)
  }
}

/** Runs telemetrygen once for each signal, and kind of metric. */
async function runTelemetrygen(protocol: Protocol, service: string): Promise<void> {
  const { host } = new URL(addressOf(protocol))
  const header = `api-key="${stack.secrets.publicKey}"`
  const common = ['--otlp-endpoint', host, '--otlp-insecure', '--otlp-header', header, '--service', service]
  if (protocol !== 'grpc') common.push('--otlp-http')
  const typed = ['text="a"', 'bool=true', 'int=17'].flatMap(value => ['--telemetry-attributes', value])
  const traceId = ['--trace-id', 'ab'.repeat(16), '--span-id', 'cd'.repeat(8)]
  await runClient('telemetrygen', ['traces', '--traces', '3', '--span-links', '2', ...common, ...typed], {})
  await runClient('telemetrygen', ['logs', '--logs', '3', ...traceId, ...common, ...typed], {})
  for (const type of ['Gauge', 'Sum', 'Histogram', 'ExponentialHistogram']) {
    await runClient('telemetrygen', ['metrics', '--metrics', '1', '--metric-type', type, ...common, ...typed], {})
  }
}
