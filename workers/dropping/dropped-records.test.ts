import { type DescMessage, fromJson, type JsonValue, type Message, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { KeyValue } from '../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import { DROP_CHARACTERS, type DropRule } from '../../schemas/records/dropping.ts'
import { traceHash } from '../../shared/ids/trace-hash.ts'
import { DEFAULT_SCRUBBER, MASK } from '../../shared/scrubbing/scrubber.ts'
import { rounds } from '../../test/support/length.ts'
import { readTables } from '../../test/support/oracles/read-tables.ts'
import { withExceptions } from '../../test/support/oracles/with-exceptions.ts'
import { logsRequest } from '../../test/support/payloads/otlp-logs.ts'
import { metricsRequest } from '../../test/support/payloads/otlp-metrics.ts'
import { traceRequest } from '../../test/support/payloads/otlp-traces.ts'
import { type Random, scrambleMessage, seededRandom } from '../../test/support/payloads/scramble-message.ts'
import { createLogsBatch } from '../otlp/logs/logs.ts'
import { createMetricsBatch } from '../otlp/metrics/metrics.ts'
import { doubleText } from '../otlp/protobuf/number-text.ts'
import type { OtlpBatch } from '../otlp/protobuf/otlp-batch.ts'
import { createSpansBatch } from '../otlp/traces/spans.ts'
import { Dropper } from './dropper.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }
const MESSAGES = rounds(3_000)

/** A record of a message, in the order in which they are counted. */
interface Found {
  readonly list: unknown[]
  readonly record: { readonly attributes?: readonly KeyValue[]; readonly traceId?: Uint8Array }
  readonly name: string
  readonly resource: readonly KeyValue[]
}

/** Returns the records of an export of any signal. */
function recordsOf(message: Message): Found[] {
  const { resourceSpans, resourceLogs, resourceMetrics } = message as never as Record<string, never[] | undefined>
  return (resourceSpans ?? resourceLogs ?? resourceMetrics ?? []).flatMap((part: Record<string, never>) => {
    const { resource, scopeSpans, scopeLogs, scopeMetrics } = part as never as Record<string, never[] | undefined> & {
      resource?: { readonly attributes: readonly KeyValue[] }
    }
    return (scopeSpans ?? scopeLogs ?? scopeMetrics ?? []).flatMap((scope: Record<string, never[]>) => {
      const lists = scope.metrics?.map(({ name, data }: Record<string, never>) => ({
        name,
        list: (data as unknown as { value?: { dataPoints: never[] } }).value?.dataPoints ?? [],
      })) ?? [{ name: undefined, list: scope.spans ?? scope.logRecords ?? [] }]
      return lists.flatMap(({ name, list }: { name: string | undefined; list: never[] }) =>
        list.map((record: Record<string, never>) => ({
          ...{ list, record, name: name ?? record.name ?? record.eventName ?? '' },
          resource: resource?.attributes ?? [],
        })),
      )
    })
  })
}

function textOf({ value }: KeyValue): string | undefined {
  const { case: kind, value: content } = value?.value ?? {}
  if (kind === 'doubleValue') return doubleText(content as number)
  return ['stringValue', 'boolValue', 'intValue'].includes(kind ?? '') ? String(content) : undefined
}

function isDropped({ record, name, resource }: Found, signal: string, rules: readonly DropRule[]): string | undefined {
  const attributes = [...resource, ...(record.attributes ?? [])]
  const rule = rules.find(
    ({ signals, services, names, attributes: demanded = [] }) =>
      (signals === undefined || (signals as string[]).includes(signal)) &&
      (!services ||
        resource.some(
          pair => pair.key === 'service.name' && services.includes(textOf(pair) ?? Math.random().toString()),
        )) &&
      (!names || names.some(text => (text.endsWith('*') ? name.startsWith(text.slice(0, -1)) : name === text))) &&
      demanded.every(({ key, value }) =>
        attributes.some(pair => pair.key === key && (value === undefined || value === textOf(pair))),
      ),
  )
  if (rule === undefined || rule.keep === 1) return undefined
  const { name: ruleName, keep = 0 } = rule
  if (keep === 0) return ruleName
  return traceHash(record.traceId as Uint8Array) < keep * 2 ** 32 ? undefined : rule.name
}

/** Makes up rules that match some of the records. */
function rulesFor(found: readonly Found[], random: Random): DropRule[] {
  const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)]
  // No text of a rule is longer.
  const named = (text: string | undefined) => text !== undefined && text.length <= DROP_CHARACTERS && text
  // The bytes of a record, whose hash decides without a trace, are not known here.
  const hasTraces = found.every(
    ({ record: { traceId = [] } }) => traceId.length === 16 && traceId.some(byte => byte !== 0),
  )
  const services = found.flatMap(({ resource }) => resource.filter(({ key }) => key === 'service.name')).map(textOf)
  const pairs = found.flatMap(({ record, resource }) => [...(record.attributes ?? []), ...resource])
  const rules = Array.from({ length: 1 + Math.floor(random() * 3) }, (_, i): DropRule | undefined => {
    const [service, name, pair] = [named(pick(services)), named(pick(found)?.name), pick(pairs)]
    const value = pair && named(textOf(pair))
    const conditions = {
      ...(random() < 0.3 && service && { services: [service, 'other'] }),
      ...(random() < 0.5 && name && { names: ['other', random() < 0.5 ? name : `${[...name].slice(0, 2).join('')}*`] }),
      ...(random() < 0.4 &&
        pair &&
        named(pair.key) && { attributes: [{ key: pair.key, ...(random() < 0.7 && value && { value }) }] }),
    }
    if (Object.keys(conditions).length === 0)
      return random() < 0.2 ? { name: `r-${i}`, signals: ['logs'], keep: 0 } : undefined
    const keep = pick(hasTraces ? [0, 0.5, 1] : [0, 0, 1]) as number
    return { name: `r-${i}`, ...conditions, keep }
  })
  return rules.filter(rule => rule !== undefined)
}

function expectDropped<T extends Message>(
  create: () => OtlpBatch,
  [signal, desc]: readonly [string, DescMessage],
  messages: fc.Arbitrary<T>,
): void {
  let droppedOfAll = 0
  const [whole, expected, actual] = [create(), create(), create()].map(withExceptions) as [
    OtlpBatch,
    OtlpBatch,
    OtlpBatch,
  ]
  fc.assert(
    fc.property(messages, fc.integer(), (message, seed) => {
      const random = seededRandom(seed)
      const encoded = Buffer.from(toBinary(desc, message as never))
      const found = recordsOf(message)
      const rules = rulesFor(found, random)
      const dropped = new Map(
        found
          .map((record, i) => [i, isDropped(record, signal, rules)] as const)
          .filter(([, name]) => name !== undefined),
      )
      const counts: Record<string, number> = {}
      for (const name of dropped.values()) counts[name as string] = (counts[name as string] ?? 0) + 1
      for (const batch of [whole, expected, actual]) batch.reset()
      const before = whole.append(ORIGIN as never, encoded)

      const rest = structuredClone(message)
      const copies = recordsOf(rest)
      for (const [i, { list, record }] of copies.entries()) if (dropped.has(i)) list.splice(list.indexOf(record), 1)
      const result = expected.append(ORIGIN as never, Buffer.from(toBinary(desc, rest as never)))
      const tables = result.ok ? readTables(expected) : new Map()

      const dropper = new Dropper({ revision: 1, rules })
      actual.dropperOf = () => dropper
      const bodies = [encoded, Buffer.from(scrambleMessage(encoded, desc, random))]
      for (const body of dropped.size === found.length ? [encoded] : bodies) {
        actual.reset()
        const own = actual.append(ORIGIN as never, body)
        if (!before.ok) {
          expect(own).toEqual(before)
          continue
        }
        if (!own.ok) throw new Error(own.reason)
        expect(Object.fromEntries([...(own.dropped ?? [])].map(([name, { count }]) => [name, count]))).toEqual(counts)
        expect(own.rows).toBe(result.ok ? result.rows : 0)
        expect(readTables(actual)).toEqual(tables)
        // Rejected records keep the positions that they have in the whole request.
        for (const [label, { indexes }] of Object.entries(before.rejected)) {
          const left = indexes.filter(index => !dropped.has(index))
          if (left.length > 0) expect(own.rejected).toMatchObject({ [label]: { indexes: left } })
        }
      }
      droppedOfAll += dropped.size
    }),
    { numRuns: MESSAGES },
  )
  expect(droppedOfAll).toBeGreaterThan(MESSAGES / 10)
}

describe('the rows of a request with dropped records are those of one without them', () => {
  it('of spans', () => expectDropped(createSpansBatch, ['traces', ExportTraceServiceRequestSchema], traceRequest))
  it('of log records', () => expectDropped(createLogsBatch, ['logs', ExportLogsServiceRequestSchema], logsRequest))
  it('of data points', () =>
    expectDropped(createMetricsBatch, ['metrics', ExportMetricsServiceRequestSchema], metricsRequest))
})

const encode = (desc: DescMessage, json: unknown) => Buffer.from(toBinary(desc, fromJson(desc, json as JsonValue)))
const spanOf = (traceId: Uint8Array, more: object = {}) => ({
  ...{ traceId: Buffer.from(traceId).toString('base64'), spanId: 'AQEBAQEBAQE=', name: 'GET /health' },
  ...more,
})
const spansBody = (spans: readonly object[], resource: object = {}) =>
  encode(ExportTraceServiceRequestSchema, { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] })
const logsBody = (logRecords: readonly object[]) =>
  encode(ExportLogsServiceRequestSchema, { resourceLogs: [{ scopeLogs: [{ logRecords }] }] })
function dropping(batch: OtlpBatch, ...rules: DropRule[]): OtlpBatch {
  const dropper = new Dropper({ revision: 1, rules })
  return Object.assign(batch, { dropperOf: () => dropper })
}

describe('dropped records', () => {
  const rule: DropRule = { name: 'health', names: ['GET /health'], keep: 0 }
  const traceId = Buffer.alloc(16, 1)

  it('leave a share of the traces, with all their spans and log records', () => {
    const kept = { name: 'sampled', signals: ['traces', 'logs'] as DropRule['signals'], keep: 0.1 }
    const [spans, logs] = [dropping(createSpansBatch(), kept), dropping(createLogsBatch(), kept)]
    let traces = 0
    for (let i = 0; i < 2_000; i++) {
      const id = Buffer.alloc(16)
      id.writeUInt32BE(i + 1, 12)
      const result = spans.append(ORIGIN as never, spansBody([spanOf(id), spanOf(id, { name: `other ${i}` })]))
      const logged = logs.append(
        ORIGIN as never,
        logsBody([spanOf(id), spanOf(id)].map(({ traceId }) => ({ traceId }))),
      )
      if (!result.ok || !logged.ok) throw new Error('refused')
      expect([0, 2]).toContain(result.rows)
      expect(logged.rows).toBe(result.rows)
      traces += result.rows / 2
    }
    // The standard deviation is 13.
    expect(Math.abs(traces - 200)).toBeLessThan(60)
  })

  it('may be all of a request, which is not refused then, nor an exception', () => {
    const batch = dropping(createSpansBatch(), rule)
    const exception = { name: 'exception', attributes: [{ key: 'exception.type', value: { stringValue: 'E' } }] }
    const body = spansBody([spanOf(traceId, { events: [exception] })])
    const hashes = [traceHash(traceId)]
    const dropped = new Map([['health', { count: 1, spans: hashes }]])
    expect(batch.append(ORIGIN as never, body)).toEqual({ ok: true, rows: 0, rejected: {}, dropped })
    expect(batch.passedOn?.bytes.length).toBe(0)
    expect(batch.tables()).toEqual([])
  })

  it('are decided on by the first rule that matches, which may keep them', () => {
    const errors: DropRule = { name: 'errors', attributes: [{ key: 'error', value: 'true' }], keep: 1 }
    const batch = dropping(createSpansBatch(), errors, rule)
    const attributes = [{ key: 'error', value: { boolValue: true } }]
    const body = spansBody([spanOf(traceId, { attributes }), spanOf(traceId), spanOf(traceId, { name: 'x' })])
    expect(batch.append(ORIGIN as never, body)).toMatchObject({ ok: true, rows: 2 })
  })

  it('count in the positions of a replay, and what is stored already is not dropped again', () => {
    const batch = dropping(createSpansBatch(), rule)
    const other = spanOf(traceId, { name: 'x' })
    const body = spansBody([spanOf(traceId), other, spanOf(traceId), { ...other, traceId: '' }])
    const first = batch.append(ORIGIN as never, body)
    expect(first).toMatchObject({ ok: true, rows: 1, rejected: { invalid_trace_id: { indexes: [3] } } })
    const replayed = batch.append({ ...ORIGIN, only: new Set([2, 3]) } as never, body)
    expect(replayed).toMatchObject({ ok: true, rows: 0, rejected: { invalid_trace_id: { indexes: [3] } } })
    expect(replayed.ok && replayed.dropped?.get('health')?.count).toBe(1)
  })

  it('are compared as they would be stored, and scrubbing counts each value once', () => {
    const pair = (key: string) => ({ key, value: { stringValue: 'Bearer x' } })
    const attributes = [pair('http.request.header.authorization')]
    const secret: DropRule = { name: 'secret', attributes: [{ ...attributes[0], value: 'Bearer x' } as never] }
    const masked: DropRule = { name: 'masked', attributes: [{ key: 'http.request.header.authorization', value: MASK }] }
    const batch = dropping(createSpansBatch(), secret, { ...masked, keep: 1 })
    batch.scrubberOf = () => DEFAULT_SCRUBBER
    const body = spansBody([spanOf(traceId, { attributes })], { attributes })
    for (let i = 0; i < 2; i++) {
      const result = batch.append(ORIGIN as never, body)
      expect(result).toMatchObject({ rows: 1, scrubbed: new Map([['credentials', 2]]), dropped: undefined })
    }
    const drops = dropping(createSpansBatch(), masked)
    drops.scrubberOf = () => DEFAULT_SCRUBBER
    expect(drops.append(ORIGIN as never, body)).toMatchObject({ rows: 0, scrubbed: undefined })
  })

  it('leave nothing to the next request if their own is refused', () => {
    const batch = dropping(createSpansBatch(), rule)
    const body = spansBody([spanOf(traceId)])
    const cut = Buffer.concat([body, body.subarray(0, -1)])
    const debug: DropRule = { name: 'debug', attributes: [{ key: 'level', value: 'debug' }] }
    const byLevel = dropping(createSpansBatch(), debug)
    const within = (tag: number, ...parts: Buffer[]): Buffer => {
      const content = Buffer.concat(parts)
      return Buffer.concat([Buffer.from([tag, content.length]), content])
    }
    const attribute = within(0x4a, within(0x0a, Buffer.from('level')), within(0x12, within(0x0a, Buffer.from('debug'))))
    // The span ends within a field after its attribute.
    const malformed = within(0x0a, within(0x12, within(0x12, attribute, Buffer.from([0x0a, 0x10]))))
    expect(byLevel.append(ORIGIN as never, malformed)).toMatchObject({ ok: false, reason: 'truncated' })
    expect(byLevel.append(ORIGIN as never, spansBody([spanOf(traceId)]))).toMatchObject({ rows: 1, dropped: undefined })
    expect(batch.append(ORIGIN as never, cut)).toMatchObject({ ok: false })
    expect(batch.append(ORIGIN as never, spansBody([spanOf(traceId, { name: 'x' })]))).toMatchObject({
      rows: 1,
      dropped: undefined,
    })
  })

  it('are those of one workspace only', () => {
    const batch = createSpansBatch()
    const dropper = new Dropper({ revision: 1, rules: [rule] })
    batch.dropperOf = workspaceId => (workspaceId === 'ws_own' ? dropper : undefined)
    const body = spansBody([spanOf(traceId)])
    const rows = ['ws_own', 'ws_1', 'ws_own', 'ws_1'].map(workspaceId => {
      const result = batch.append({ ...ORIGIN, workspaceId } as never, body)
      return result.ok && result.rows
    })
    expect(rows).toEqual([0, 1, 0, 1])
  })
})
