import { createHash } from 'node:crypto'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import type { LocalSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { replayKey } from '../../../shared/object-store/object-keys.ts'
import { encodeReplayMetadata } from '../clients/encode-replay-metadata.ts'
import type { Random } from '../payloads/scramble-message.ts'
import type { LedgerEntry } from './ledger.ts'

/** A payload with its request and what it becomes. */
export interface SentPayload {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Whether its client sends it until it is acknowledged, because it is stored once however often it is sent. */
  readonly isRepeated?: boolean
  readonly entry: Pick<LedgerEntry, 'table' | 'id' | 'rows' | 'fate' | 'object'>
}

/** Makes the payload of a kind with this serial number. All bytes follow from the number and the random values. */
type MakePayload = (serial: number, random: Random, secrets: LocalSecrets) => SentPayload

/** Every tenth export of spans contains a span that failed. */
const FAILED_EVERY = 10
/** Service name of all exports. */
const SERVICE = 'chaos'
/** Session of all replay chunks. */
export const REPLAY_SESSION = 'chaos'

const rowIds = (id: string, count: number) => Array.from({ length: count }, (_, i) => `${id}-${i}`)
const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })
const resource = { attributes: [text('service.name', SERVICE)] }
const nowNano = () => BigInt(Date.now()) * 1_000_000n
const json = (value: unknown) => Buffer.from(JSON.stringify(value))
const JSON_TYPE = { 'content-type': 'application/json' }
const PROTOBUF_TYPE = { 'content-type': 'application/x-protobuf' }
const bytesOf = (random: Random, length: number) => Uint8Array.from({ length }, () => random() * 256)

/** Makes an export with five spans that are stored, and others with these names. */
function spansPayload(serial: number, random: Random, droppedNames: readonly string[] = []): SentPayload {
  const id = `t${serial}`
  const rows = rowIds(id, 5)
  const startTimeUnixNano = nowNano()
  const spans = [...rows, ...droppedNames].map((name, i) => ({
    traceId: bytesOf(random, 16),
    spanId: bytesOf(random, 8),
    name,
    startTimeUnixNano,
    endTimeUnixNano: startTimeUnixNano + 1_000n,
    attributes: [
      text('session.id', `s${serial % 20}`),
      text('customer', 'zorana@example.com'),
      text('api_key', 'secret'),
    ],
    ...(isFailed(serial, i) && {
      status: { code: 2 },
      events: [{ name: 'exception', attributes: [text('exception.type', 'E')] }],
    }),
  }))
  const message = create(ExportTraceServiceRequestSchema, { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] })
  const body = toBinary(ExportTraceServiceRequestSchema, message)
  return {
    path: '/drain/v1/traces',
    ...(serial % 2 === 0 ? { body, headers: PROTOBUF_TYPE } : encoded('gzip', gzipSync(body))),
    entry: { table: 'spans', id, rows, fate: 'stored' },
  }
}

/** The kinds of payloads that are sent once, by the name of the client that sends them. */
export const PAYLOADS: Readonly<Record<string, MakePayload>> = {
  traces: (serial, random) => spansPayload(serial, random),
  logs(serial) {
    const id = `l${serial}`
    const rows = rowIds(id, 3)
    const logRecords = rows.map(row => ({ timeUnixNano: String(nowNano()), body: { stringValue: row } }))
    const attributes = [{ key: 'service.name', value: { stringValue: SERVICE } }]
    const body = json({ resourceLogs: [{ resource: { attributes }, scopeLogs: [{ logRecords }] }] })
    return { path: '/drain/v1/logs', headers: JSON_TYPE, body, entry: { table: 'logs', id, rows, fate: 'stored' } }
  },
  metrics(serial, random) {
    const id = `m${serial}`
    const rows = rowIds(id, 2)
    const dataPoints = rows.map(row => ({
      timeUnixNano: nowNano(),
      value: { case: 'asDouble' as const, value: random() },
      attributes: [text('id', row)],
    }))
    const metrics = [{ name: 'carts', data: { case: 'gauge' as const, value: { dataPoints } } }]
    const message = create(ExportMetricsServiceRequestSchema, {
      resourceMetrics: [{ resource, scopeMetrics: [{ metrics }] }],
    })
    return {
      path: '/drain/v1/metrics',
      ...encoded('zstd', zstdCompressSync(toBinary(ExportMetricsServiceRequestSchema, message))),
      entry: { table: 'metric_points', id, rows, fate: 'stored' },
    }
  },
  heartbeats(serial) {
    const id = `h${serial}`
    const body = json({ sessionId: id })
    return { path: '/v3/session', headers: JSON_TYPE, body, entry: inOneRow('session_heartbeats', id) }
  },
  identities(serial) {
    const id = `i${serial}`
    const body = json({ sessionId: id, identifier: `user ${serial}`, source: { type: 'custom', name: 'test' } })
    return { path: '/v3/session/identify', headers: JSON_TYPE, body, entry: inOneRow('session_identities', id) }
  },
  replay(serial, random, { workspaceId, surfaceId }) {
    const id = String(serial)
    const noise = Buffer.from(bytesOf(random, 500 + Math.floor(random() * 8_000))).toString('hex')
    const lines = Buffer.from(`${JSON.stringify({ type: 3, timestamp: serial, data: { noise } })}\n`)
    const metadata = { windowId: 'w', segmentId: serial, firstTs: serial, lastTs: serial + 1 }
    const chunk = { workspaceId, surfaceId, sessionId: REPLAY_SESSION, windowId: 'w', segmentId: id }
    return {
      path: `/v3/replay/upload/${REPLAY_SESSION}`,
      headers: { 'content-type': 'application/octet-stream', 'x-replay-metadata': encodeReplayMetadata(metadata) },
      body: serial % 3 === 0 ? lines : gzipSync(lines),
      isRepeated: true,
      entry: {
        ...inOneRow('replay_chunks', id),
        object: { key: replayKey(chunk), sha256: createHash('sha256').update(lines).digest('hex') },
      },
    }
  },
  reports(serial, random) {
    const id = `rel_b${serial}`
    const body = json({ result: 'ok', fileCount: serial, total: Math.floor(random() * 1e6) })
    return {
      path: `/v3/releases/${id}/telemetry`,
      headers: JSON_TYPE,
      body,
      entry: inOneRow('build_reports', id),
    }
  },
  /** An export that only a worker can see is broken. */
  poison(serial) {
    const id = `p${serial}`
    const entry = { table: 'spans', id, rows: [], fate: 'dead-lettered' as const }
    return { path: '/drain/v1/traces', ...encoded('gzip', gzipSync(`no export ${id}`)), entry }
  },
  /** An export that the edge refuses, for its body or its key. */
  refused(serial) {
    const id = `r${serial}`
    const rows = rowIds(id, 1)
    const entry = { table: 'logs', id, rows, fate: 'stored' as const }
    const logRecords = rows.map(row => ({ timeUnixNano: String(nowNano()), body: { stringValue: row } }))
    const body = json({ resourceLogs: [{ scopeLogs: [{ logRecords }] }] })
    const fault = serial % 2 === 0 ? { 'content-encoding': 'gzip' } : { 'x-service-public-key': 'pk_unknown' }
    return { path: '/drain/v1/logs', headers: { ...JSON_TYPE, ...fault }, body, entry }
  },
}

/** Returns whether a span of an export of traces has failed, which adds an occurrence. */
function isFailed(serial: number, row: number): boolean {
  return serial % FAILED_EVERY === 0 && row === 0
}

const inOneRow = (table: string, id: string) => ({ table, id, rows: [id], fate: 'stored' as const })

const encoded = (encoding: string, body: Uint8Array) => ({
  body,
  headers: { ...PROTOBUF_TYPE, 'content-encoding': encoding },
})

/** Name of the spans that rules of the workspace drop, if it has any. */
export const DROPPED_NAME = 'dropped'
/** The same, and each export of spans also has two spans that rules of the workspace must drop. */
export const WITH_DROPPED_SPANS: typeof PAYLOADS = {
  ...PAYLOADS,
  traces: (serial, random) => spansPayload(serial, random, [DROPPED_NAME, DROPPED_NAME]),
}
