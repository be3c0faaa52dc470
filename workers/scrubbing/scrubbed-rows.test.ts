import { type DescMessage, fromJson, type Message, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { AnyValue, KeyValue } from '../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import { PATTERN_FIELDS, VALUE_KINDS } from '../../schemas/records/scrubbing.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { DEFAULT_SCRUBBER, MASK, Scrubber } from '../../shared/scrubbing/scrubber.ts'
import { rounds } from '../../test/support/length.ts'
import { readTables } from '../../test/support/oracles/read-tables.ts'
import { withExceptions } from '../../test/support/oracles/with-exceptions.ts'
import { exampleFrame } from '../../test/support/payloads/example-frame.ts'
import { logsRequest } from '../../test/support/payloads/otlp-logs.ts'
import { metricsRequest } from '../../test/support/payloads/otlp-metrics.ts'
import { traceRequest } from '../../test/support/payloads/otlp-traces.ts'
import { type Random, scrambleMessage, seededRandom } from '../../test/support/payloads/scramble-message.ts'
import { createLogsBatch } from '../otlp/logs/logs.ts'
import { createMetricsBatch } from '../otlp/metrics/metrics.ts'
import type { OtlpBatch } from '../otlp/protobuf/otlp-batch.ts'
import { createSpansBatch } from '../otlp/traces/spans.ts'
import { createKnownScrubbing } from './known-scrubbing.ts'
import { scrubbed } from './scrubbed-rows.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }
const SECRET_KEYS = [
  'password',
  'http.request.header.authorization',
  'apiKey',
  'x-api-key',
  `${'long.'.repeat(40)}token`,
]
const MESSAGES = rounds(2_000)

/** Visits every KeyValue of a message, nested ones and those in lists included. */
function visit(value: unknown, change: (pair: KeyValue) => boolean): void {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return
  const { $typeName } = value as { $typeName?: string }
  if ($typeName === 'opentelemetry.proto.common.v1.KeyValue' && change(value as KeyValue)) return
  for (const member of Object.values(value)) visit(member, change)
}

/** Gives some of the attributes of a message keys of secrets. */
function withSecrets<T>(message: T, random: Random): T {
  const copy = structuredClone(message)
  visit(copy, pair => {
    if (random() < 0.3) pair.key = SECRET_KEYS[Math.floor(random() * SECRET_KEYS.length)] as string
    return false
  })
  return copy
}

/** Replaces the values of secrets, as a client would that scrubs itself. */
function scrubbedMessage<T>(message: T): T {
  const copy = structuredClone(message)
  visit(copy, pair => {
    if (!SECRET_KEYS.includes(pair.key)) return false
    const value = { case: 'stringValue', value: MASK } as const
    pair.value = { $typeName: 'opentelemetry.proto.common.v1.AnyValue', value } as AnyValue
    return true
  })
  return copy
}

/** Values of every kind, of which none is a part of another. */
const SECRET_VALUES = [
  '4111 1111 1111 1111',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0NyJ9.Zm9vYmFyYmF6',
  'zorana@example.com',
  'https://zorana:hunter2@example.test/',
]
const VALUE_SCRUBBER = new Scrubber({
  revision: 1,
  rules: [
    { name: 'user', keys: ['user id'], action: 'keep' },
    { name: 'values', values: [...VALUE_KINDS], action: 'hash' },
    { name: 'orders', keys: ['order'], fields: [...PATTERN_FIELDS], pattern: 'N-\\d{4}', action: 'mask' },
  ],
  hashKey: Buffer.from('key'),
})
const STAYS = ['session.id', 'service.name', 'service.version', 'user.id']
const PATTERN_KEYS = ['order', 'exception.message', 'exception.stacktrace']

/** Changes every text of a message. `name` is that of the message and the field. The value of a key that decides on it stays. */
function changeTexts(
  value: unknown,
  change: (text: string, name: string, patterned: boolean) => string,
  patterned = false,
): void {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return
  const { $typeName = '', key } = value as { $typeName?: string; key?: string }
  if ($typeName.endsWith('.AnyValue')) changeNumber(value as AnyValue)
  const isPair = $typeName.endsWith('.KeyValue')
  if (isPair && STAYS.includes(key as string)) return
  const isPatterned = patterned || (isPair && PATTERN_KEYS.includes(key as string))
  for (const [name, member] of Object.entries(value)) {
    const place = `${$typeName.split('.').at(-1)}.${name}`
    const isBody = place === 'LogRecord.body'
    if (typeof member !== 'string') changeTexts(member, change, isPatterned || isBody)
    else if (name !== '$typeName' && name !== 'case' && name !== '$unknown')
      Object.assign(value, { [name]: change(member, place, isPatterned && !(isPair && name === 'key')) })
  }
}

/** An int or a double may be the number of a card. */
function changeNumber(value: AnyValue): void {
  const { case: kind, value: number } = value.value
  const rule = kind === 'intValue' || kind === 'doubleValue' ? VALUE_SCRUBBER.scanner?.ruleOfNumber(number) : undefined
  if (rule === undefined) return
  value.value = { case: 'stringValue', value: VALUE_SCRUBBER.replace(rule, () => String(number)) as string }
}

const PATTERN_PLACES = ['Span.name', 'Event.name', 'Metric.name', 'LogRecord.eventName', 'Status.message']

function withSecretValues<T>(message: T, random: Random): T {
  const copy = structuredClone(message)
  visit(copy, pair => {
    if (random() < 0.1) pair.key = [...STAYS, ...PATTERN_KEYS][Math.floor(random() * 7)] as string
    return false
  })
  changeTexts(copy, (text, name) => {
    if (random() < 0.5 || (name === 'KeyValue.key' && [...STAYS, ...PATTERN_KEYS].includes(text))) return text
    const secret = random() < 0.3 ? 'N-1234' : SECRET_VALUES[Math.floor(random() * SECRET_VALUES.length)]
    return `${text}\n${secret}\n`
  })
  return copy
}

function withValuesScrubbed<T>(message: T): T {
  const copy = structuredClone(message)
  const everywhere = VALUE_SCRUBBER.patternsOf('name')
  changeTexts(copy, (text, name, patterned) =>
    VALUE_SCRUBBER.scrubString(text, patterned || PATTERN_PLACES.includes(name) ? everywhere : []),
  )
  return copy
}

interface ReadMessage {
  readonly $typeName?: string
  readonly logRecords?: readonly unknown[]
  readonly data?: { readonly value?: { readonly dataPoints: readonly unknown[] } }
}

/** Returns the number of secrets in what is read of a message: scopes without log records and metrics without points are not. */
function secretsIn(message: Message): number {
  const isRead = ({ $typeName, logRecords, data }: ReadMessage) =>
    logRecords?.length !== 0 && (!$typeName?.endsWith('.Metric') || (data?.value?.dataPoints.length ?? 0) > 0)
  const read = JSON.parse(
    JSON.stringify(message, (_, value) => {
      if (typeof value === 'bigint') return 0
      return typeof value !== 'object' || value === null || isRead(value) ? value : null
    }),
  )
  let secrets = 0
  visit(read, ({ key }) => {
    const isSecret = SECRET_KEYS.includes(key)
    if (isSecret) secrets++
    return isSecret
  })
  return secrets
}

/** Rules, and what a client does that scrubs itself by them. */
interface ScrubbingCase {
  readonly scrubber: Scrubber
  withSecrets<T>(message: T, random: Random): T
  scrubbedMessage<T>(message: T): T
  countIn?(message: Message): number
}

function expectScrubbed<T extends Message>(
  create: () => OtlpBatch,
  desc: DescMessage,
  messages: fc.Arbitrary<T>,
  by: ScrubbingCase = { scrubber: DEFAULT_SCRUBBER, withSecrets, scrubbedMessage, countIn: secretsIn },
): void {
  const { withSecrets, scrubbedMessage } = by
  const [plain, scrubbing] = [create(), create()]
  scrubbing.scrubberOf = () => by.scrubber
  if (by.scrubber !== DEFAULT_SCRUBBER) plain.scrubberOf = () => new Scrubber({ revision: 2, rules: [] })
  const [expected, actual] = [withExceptions(plain), withExceptions(scrubbing)]
  fc.assert(
    fc.property(messages, fc.integer(), (message, seed) => {
      const random = seededRandom(seed)
      const secret = withSecrets(message, random)
      const encoded = Buffer.from(toBinary(desc, secret as never))
      const bodies = [encoded, Buffer.from(scrambleMessage(encoded, desc, random))]
      expected.reset()
      const result = expected.append(ORIGIN as never, Buffer.from(toBinary(desc, scrubbedMessage(secret) as never)))
      const hasRecords = !result.ok || result.rows > 0 || Object.keys(result.rejected).length > 0
      for (const body of bodies) {
        actual.reset()
        const scrubbedResult = actual.append(ORIGIN as never, body)
        // An export without records may be refused or not, by what else is in it.
        if (hasRecords) expect({ ...scrubbedResult, scrubbed: undefined }).toEqual(result)
        expect(readTables(actual)).toEqual(readTables(expected))
        if (!scrubbedResult.ok || scrubbedResult.rows === 0 || Object.keys(scrubbedResult.rejected).length > 0) continue
        if (by.countIn !== undefined) expect(scrubbedResult.scrubbed?.get('credentials') ?? 0).toBe(by.countIn(secret))
      }
    }),
    { numRuns: MESSAGES },
  )
}

describe('rows with secrets in any attribute are those of a client that had scrubbed them', () => {
  it('of spans, events, links, resources and scopes', () =>
    expectScrubbed(createSpansBatch, ExportTraceServiceRequestSchema, traceRequest))
  it('of log records, also in their bodies', () =>
    expectScrubbed(createLogsBatch, ExportLogsServiceRequestSchema, logsRequest))
  it('of data points, exemplars and metadata', () =>
    expectScrubbed(createMetricsBatch, ExportMetricsServiceRequestSchema, metricsRequest))
})

describe('rows with secrets in any text are those of a client that had scrubbed them', () => {
  const by = { scrubber: VALUE_SCRUBBER, withSecrets: withSecretValues, scrubbedMessage: withValuesScrubbed }
  it('of spans, events, links, resources and scopes', () =>
    expectScrubbed(createSpansBatch, ExportTraceServiceRequestSchema, traceRequest, by))
  it('of log records, also in their bodies', () =>
    expectScrubbed(createLogsBatch, ExportLogsServiceRequestSchema, logsRequest, by))
  it('of data points, exemplars and metadata', () =>
    expectScrubbed(createMetricsBatch, ExportMetricsServiceRequestSchema, metricsRequest, by))
})

describe('the rules of a batch', () => {
  const record = (revision: number, key: string) => ({
    ...({ version: 1, workspaceId: 'ws_1', revision, changedAt: '2026-01-01T00:00:00.000Z' } as const),
    rules: [{ name: 'own', keys: [key], action: 'mask' as const }],
  })
  const frame = exampleFrame('', { workspaceId: 'ws_1' })

  it('stay the same while it is formed, are recorded, and are those of the record when it is formed again', async () => {
    let current = record(7, 'iban')
    let nowMs = 0
    const known = createKnownScrubbing(
      {
        scrubbing: async workspaceId => (workspaceId === 'ws_1' ? current : undefined),
        scrubbingAt: async (_, revision) => (revision === 7 ? record(7, 'iban') : undefined),
        scrubbingKey: async () => Buffer.alloc(32),
      },
      () => nowMs,
    )
    const create = () => {
      const rows = createSpansBatch()
      return { rows, batch: scrubbed(withExceptions(rows), rows, known) }
    }
    const { rows, batch } = create()
    await batch.prepare?.([frame, exampleFrame('', { workspaceId: 'ws_2' })])
    current = record(8, 'email')
    nowMs += 60_000
    await batch.prepare?.([frame])
    expect(batch.rules?.()).toEqual({ scrubbing: { ws_1: 7 } })
    expect(rows.scrubberOf?.('ws_1')?.ruleOf('iban')).toBeDefined()
    expect(rows.scrubberOf?.('ws_2')).toBe(DEFAULT_SCRUBBER)

    const again = create()
    await again.batch.prepare?.([frame], { scrubbing: { ws_1: 7 } })
    expect(again.rows.scrubberOf?.('ws_1')?.revision).toBe(7)
    const earlier = create()
    await earlier.batch.prepare?.([frame], {})
    expect(earlier.rows.scrubberOf?.('ws_1')).toBe(DEFAULT_SCRUBBER)
    batch.reset()
    await batch.prepare?.([frame])
    expect(batch.rules?.()).toEqual({ scrubbing: { ws_1: 8 } })
  })

  it('are the last known ones while the directory does not respond, and without any it waits', async () => {
    let nowMs = 0
    let isDown = false
    // As a client of Redis that has lost its server: its commands wait.
    const wait = () => new Promise<undefined>(() => {})
    const known = createKnownScrubbing(
      {
        scrubbing: async () => (isDown ? wait() : record(7, 'iban')),
        scrubbingAt: wait,
        scrubbingKey: async () => Buffer.alloc(32),
      },
      () => nowMs,
    )
    expect((await known.of('ws_1')).revision).toBe(7)
    isDown = true
    nowMs += 3_600_000
    expect((await known.of('ws_1')).revision).toBe(7)
    await expect(known.of('ws_2')).rejects.toThrow(TransientError)
    await expect(known.of('ws_1', 3)).rejects.toThrow(TransientError)
    isDown = false
    nowMs += 5_000
    expect((await known.of('ws_2')).revision).toBe(7)
  })

  it('do not name a workspace whose only job was rewound out of the batch', async () => {
    const known = createKnownScrubbing({
      scrubbing: async workspaceId => ({ ...record(7, 'iban'), workspaceId }),
      scrubbingAt: async () => undefined,
      scrubbingKey: async () => Buffer.alloc(32),
    })
    const rows = createSpansBatch()
    const batch = scrubbed(withExceptions(rows), rows, known)
    await batch.prepare?.([frame])
    batch.markJob()
    await batch.prepare?.([frame, exampleFrame('', { workspaceId: 'ws_2' })])
    batch.markJob()
    batch.rewindJob()
    expect(batch.rules?.()).toEqual({ scrubbing: { ws_1: 7 } })
  })

  it('convert equal metrics of workspaces with other rules apart', () => {
    const none = new Scrubber({ revision: 1, rules: [] })
    const rows = createMetricsBatch()
    rows.scrubberOf = workspaceId => (workspaceId === 'ws_own' ? none : DEFAULT_SCRUBBER)
    const metadata = [{ key: 'api_key', value: { stringValue: 'the-secret' } }]
    const metric = { name: 'm', metadata, gauge: { dataPoints: [{ timeUnixNano: '1', asInt: '1' }] } }
    const request = fromJson(ExportMetricsServiceRequestSchema, {
      resourceMetrics: [{ scopeMetrics: [{ metrics: [metric] }] }],
    })
    const body = Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request))
    for (const workspaceId of ['ws_own', 'ws_1']) rows.append({ ...ORIGIN, workspaceId } as never, body)
    const points = readTables(rows).get('metric_points') ?? []
    const text = (value: unknown) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? 0 : part))
    expect(points.map(point => text(point).includes('the-secret'))).toEqual([true, false])
  })

  it('convert equal resources of workspaces with other rules apart', () => {
    const own = new Scrubber({ revision: 1, rules: [{ name: 'n', keys: ['host name'], action: 'mask' }] })
    const rows = createSpansBatch()
    rows.scrubberOf = workspaceId => (workspaceId === 'ws_own' ? own : DEFAULT_SCRUBBER)
    const batch = withExceptions(rows)
    const request = {
      resourceSpans: [
        {
          resource: { attributes: [{ key: 'host.name', value: { stringValue: 'secret-host' } }] },
          scopeSpans: [{ spans: [{ traceId: 'AQEBAQEBAQEBAQEBAQEBAQ==', spanId: 'AQEBAQEBAQE=', name: 'x' }] }],
        },
      ],
    }
    const body = Buffer.from(
      toBinary(ExportTraceServiceRequestSchema, fromJson(ExportTraceServiceRequestSchema, request)),
    )
    for (const workspaceId of ['ws_1', 'ws_own', 'ws_1', 'ws_own']) {
      expect(batch.append({ ...ORIGIN, workspaceId } as never, body)).toMatchObject({ ok: true, rows: 1 })
    }
    const spans = readTables(batch).get('spans') ?? []
    const isShown = spans.map(span => [
      span.workspace_id,
      JSON.stringify(span, (_, value) => (typeof value === 'bigint' ? 0 : value)).includes('secret-host'),
    ])
    expect(isShown).toEqual([
      ['ws_1', true],
      ['ws_own', false],
      ['ws_1', true],
      ['ws_own', false],
    ])
  })
})
