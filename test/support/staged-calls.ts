import { type ClickHouseClient, insertNative } from '../../clickhouse/client.ts'
import { createJsonTranscoder } from '../../workers/otlp/json/transcode-json.ts'
import { createSpansBatch } from '../../workers/otlp/traces/spans.ts'
import { createSpanStatsBatch } from '../../workers/span-stats/stats-batch.ts'

/** Kinds of spans by their numbers in OTLP. */
export const SERVER = 2
/** The kind of a client. */
export const CLIENT = 3
/** The kind of a producer of messages. */
export const PRODUCER = 4
/** The kind of a consumer of messages. */
export const CONSUMER = 5
/** Flags of a span whose parent is in the same process. */
export const LOCAL = 256
/** Flags of a span whose parent is in another process. */
const REMOTE = 768

/** A span of a call between services. Traces and spans have numbers instead of ids. */
export interface StagedSpan {
  readonly trace: number
  readonly id: number
  readonly parent?: number
  readonly service: string
  readonly kind: number
  /** `REMOTE` unless given. */
  readonly flags?: number
  readonly name?: string
  readonly durationNano?: number
  readonly failed?: boolean
  readonly attributes?: Readonly<Record<string, string>>
  readonly environment?: string
  readonly version?: string
  /** When it arrives, from the start of the minute. It ends a millisecond before. */
  readonly arrivesMs?: number
}

/** Where and when spans arrive. */
interface Arrival {
  readonly workspaceId: string
  readonly minuteMs: number
}

/** Returns a number as an id. */
export const hex = (number: number, digits: number) => number.toString(16).padStart(digits, '0')
const pairsOf = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([key, stringValue]) => ({ key, value: { stringValue } }))
const transcoder = createJsonTranscoder()
let inserts = 0

/** Stores spans and their statistics as the workers do. */
export async function storeSpans(
  clickhouse: ClickHouseClient,
  { workspaceId, minuteMs }: Arrival,
  spans: readonly StagedSpan[],
): Promise<void> {
  const batch = createSpansBatch()
  for (const span of spans) {
    const read = transcoder.transcode('traces', Buffer.from(JSON.stringify(exportOf(span, minuteMs))))
    if (!read.ok) throw new Error(read.reason)
    const source = { workspaceId, surfaceId: 'srf_1', receivedAtMs: minuteMs + (span.arrivesMs ?? 1_000) }
    const { ok } = batch.append({ ...source, only: undefined } as never, read.message)
    if (!ok) throw new Error('the batch refuses a span')
  }
  const stats = createSpanStatsBatch()
  for (const frame of batch.spanStats?.().flat() ?? []) stats.append({ ...frame, only: undefined } as never, frame.body)
  for (const { table, columns, block } of [...batch.tables(), ...stats.tables()]) {
    const deduplicationToken = `staged calls ${inserts++}`
    await insertNative(clickhouse, { table, columns, block, deduplicationToken, timeoutMs: 20_000 })
  }
}

function exportOf({ service, environment, version, arrivesMs = 1_000, ...span }: StagedSpan, minuteMs: number): object {
  const { trace, id, parent, kind, flags = REMOTE, name = 'x', durationNano = 1_000, failed = false } = span
  const endUnixNano = BigInt(minuteMs + arrivesMs - 1) * 1_000_000n
  const resource = {
    'service.name': service,
    ...(environment && { 'deployment.environment.name': environment }),
    ...(version && { 'service.version': version }),
  }
  const shown = {
    ...{ traceId: hex(trace, 32), spanId: hex(id, 16), name, kind, flags },
    ...(parent !== undefined && { parentSpanId: hex(parent, 16) }),
    ...(failed && { status: { code: 2 } }),
    startTimeUnixNano: String(endUnixNano - BigInt(durationNano)),
    endTimeUnixNano: String(endUnixNano),
    attributes: pairsOf(span.attributes ?? {}),
  }
  return { resourceSpans: [{ resource: { attributes: pairsOf(resource) }, scopeSpans: [{ spans: [shown] }] }] }
}
