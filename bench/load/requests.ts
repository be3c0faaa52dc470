import { randomBytes } from 'node:crypto'
import type { Signal } from '../../schemas/queues/names.ts'
import { logPayload } from '../payloads/log-payload.ts'
import { metricsPayload } from '../payloads/metrics-payload.ts'
import { tracePayload } from '../payloads/trace-payload.ts'
import type { LoadPlan, PayloadPlan } from './plan.ts'
import { findRenewable, NOTHING_RENEWABLE, type RenewableFields } from './renewal.ts'

/** Bytes of one request, head and body, which can be sent many times. */
export interface PreparedRequest {
  readonly bytes: Buffer
  /** Fields of `bytes` that are renewed before each sending. */
  readonly renewable: RenewableFields
}

/** Builds a body with this many records. The bodies of a pool are spread over eight services. */
const BODIES: Record<Signal, (records: number, poolIndex: number) => Buffer> = {
  traces: (spans, i) => tracePayload({ spans, spansPerTrace: 20, exceptionEvery: 0, service: `shop-${i % 8}` }),
  logs: (records, i) => logPayload({ records, exceptionEvery: 0, service: `shop-${i % 8}` }),
  // Every body comes from a different instance, so no two bodies share a series.
  metrics: (points, i) =>
    metricsPayload({ points, pointsPerMetric: 10, service: `shop-${i % 8}`, instance: `shop-${i % 8}-${i}` }),
}

/** Builds a pool of bodies. Done once per plan, because building a body costs more than sending it. */
export function buildBodies({ signal = 'traces', spans, pool, undecodable }: PayloadPlan): Buffer[] {
  return Array.from({ length: pool }, (_, i) => (undecodable ? undecodableBody() : BODIES[signal](spans, i)))
}

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
export function prepareRequest(plan: LoadPlan, body: Buffer, poolIndex: number): PreparedRequest {
  const varied = plan.varyHeaders?.[poolIndex % plan.varyHeaders.length]
  const headers = { host: `127.0.0.1:${plan.port}`, ...plan.headers, ...varied, 'content-length': String(body.length) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`POST ${plan.path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
  const { signal = 'traces', freshIds } = plan.payload
  const renewable = freshIds && !plan.payload.undecodable ? findRenewable(signal, body, head.length) : NOTHING_RENEWABLE
  return { bytes: Buffer.concat([head, body]), renewable }
}
