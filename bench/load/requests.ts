import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Signal } from '../../schemas/queues/names.ts'
import { logPayload } from '../payloads/log-payload.ts'
import { metricsPayload } from '../payloads/metrics-payload.ts'
import { realisticTracePayload } from '../payloads/realistic-trace-payload.ts'
import { tracePayload } from '../payloads/trace-payload.ts'
import type { LoadPlan, PayloadPlan, SpanData } from './plan.ts'
import { createChanges, findRenewable, NOTHING_RENEWABLE, type RenewableFields, renew } from './renewal.ts'

/** Bytes of one request, head and body, which can be sent many times. */
export interface PreparedRequest {
  readonly bytes: Buffer
  /** Fields of `bytes` that are renewed before each sending. */
  readonly renewable: RenewableFields
}

/** Builds a body with this many records. The bodies of a pool are spread over eight services. */
const BODIES: Record<Exclude<Signal, 'traces'> | SpanData, (records: number, poolIndex: number) => Buffer> = {
  uniform: (spans, i) => tracePayload({ spans, spansPerTrace: 20, exceptionEvery: 0, service: `shop-${i % 8}` }),
  exceptions: (spans, i) => tracePayload({ spans, spansPerTrace: 20, exceptionEvery: 10, service: `shop-${i % 8}` }),
  realistic: realisticTracePayload,
  logs: (records, i) => logPayload({ records, exceptionEvery: 0, service: `shop-${i % 8}` }),
  // Every body comes from a different instance, so no two bodies share a series.
  metrics: (points, i) =>
    metricsPayload({ points, pointsPerMetric: 10, service: `shop-${i % 8}`, instance: `shop-${i % 8}-${i}` }),
}

/** Records with different ids in the compressed bodies of a load: those of two seconds. */
const GZIP_SPANS = 600_000
const GZIP_BODIES_MAX = 32_768

/** Builds a pool of bodies. Done once per plan, because building a body costs more than sending it. */
export function buildBodies(plan: PayloadPlan): Buffer[] {
  const { signal = 'traces', spans, pool, data = 'uniform', gzip, undecodable } = plan
  if (undecodable) return Array.from({ length: pool }, undecodableBody)
  const bodies = Array.from({ length: pool }, (_, i) => BODIES[signal === 'traces' ? data : signal](spans, i))
  if (gzip === undefined) return bodies
  const packed = compress(signal, bodies, Math.min(GZIP_BODIES_MAX, Math.ceil(GZIP_SPANS / spans)))
  return gzip === 'all' ? packed : [...bodies, ...packed]
}

/** Compresses copies of the bodies, each with other ids. Level 6 is the default of zlib and of the Collector's exporters. */
function compress(signal: Signal, bodies: readonly Buffer[], count: number): Buffer[] {
  const fields = bodies.map(body => findRenewable(signal, body))
  const nextChange = createChanges(Date.now())
  return Array.from({ length: count }, (_, i) => {
    const body = Buffer.from(bodies[i % bodies.length] as Buffer)
    renew(body, fields[i % bodies.length] as RenewableFields, nextChange(), Date.now())
    return gzipSync(body)
  })
}

/** Returns whether a body begins as gzip does. No protobuf of OTLP does: its first byte is the tag of field 1. */
export const isGzip = (body: Buffer) => body[0] === GZIP_HEAD[0] && body[1] === GZIP_HEAD[1]

const UNDECODABLE_BYTES = 2_048
/** Magic, method and flags of gzip (RFC 1952), which is all that an edge looks at. */
const GZIP_HEAD = Buffer.from([0x1f, 0x8b, 8, 0])

/** The trailer states a small decoded size, so that the edge expects little work. */
function undecodableBody(): Buffer {
  const body = Buffer.concat([GZIP_HEAD, randomBytes(UNDECODABLE_BYTES - GZIP_HEAD.length)])
  body.writeUInt32LE(4 * UNDECODABLE_BYTES, UNDECODABLE_BYTES - 4)
  return body
}

/** Builds the request that carries this body. */
export function prepareRequest(plan: LoadPlan, body: Buffer): PreparedRequest {
  const headers = {
    host: `127.0.0.1:${plan.port}`,
    ...plan.headers,
    ...(isGzip(body) && { 'content-encoding': 'gzip' }),
    'content-length': String(body.length),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`POST ${plan.path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
  const { signal = 'traces', freshIds } = plan.payload
  const renewable = freshIds && !isGzip(body) ? findRenewable(signal, body, head.length) : NOTHING_RENEWABLE
  return { bytes: Buffer.concat([head, body]), renewable }
}
