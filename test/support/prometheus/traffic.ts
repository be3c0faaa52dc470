import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { LocalCredentials } from '../../../deploy/local/start.ts'

const TRACES = {
  resourceSpans: [
    {
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] },
      scopeSpans: [
        {
          spans: [
            {
              traceId: '5b8efff798038103d269b633813fc60c',
              spanId: 'eee19b7ec3c1b174',
              name: 'GET /cart',
              startTimeUnixNano: '1790000000000000000',
              endTimeUnixNano: '1790000000042000000',
              status: { code: 2, message: 'the cart is empty' },
            },
          ],
        },
      ],
    },
  ],
}
/** One log record. */
export const LOGS = { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'a line' } }] }] }] }
const METRICS = {
  resourceMetrics: [
    {
      scopeMetrics: [
        { metrics: [{ name: 'm', gauge: { dataPoints: [{ asInt: '1', timeUnixNano: '1790000000000000000' }] } }] },
      ],
    },
  ],
}
const CHUNK_TIME = 1_790_000_000_000
const CHUNK_METADATA = encodeURIComponent(
  Buffer.from(JSON.stringify({ windowId: 'w', segmentId: 0, firstTs: CHUNK_TIME, lastTs: CHUNK_TIME })).toString(
    'base64',
  ),
)
/** Gzipped bytes that are not an export. The edge does not look into them. */
export const UNREADABLE = gzipSync(Buffer.alloc(64, 0xff))

/** Sends a body to the edge, and returns the status of the answer. */
export async function send({ baseUrl, publicKey }: LocalCredentials, path: string, body: unknown): Promise<number> {
  const isBytes = body instanceof Uint8Array
  const response = await fetch(baseUrl + path, {
    method: 'POST',
    headers: {
      'x-service-public-key': publicKey,
      'content-type': isBytes ? 'application/x-protobuf' : 'application/json',
      ...(isBytes && { 'content-encoding': 'gzip' }),
    },
    body: isBytes ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(5_000),
  })
  await response.arrayBuffer()
  return response.status
}

/** Sends one request of each signal, and reads one page. */
export async function sendAll(at: LocalCredentials): Promise<void> {
  await Promise.all([
    send(at, '/drain/v1/traces', TRACES),
    send(at, '/drain/v1/logs', LOGS),
    send(at, '/drain/v1/metrics', METRICS),
    send(at, '/v3/session', { sessionId: 'session-1' }),
    send(at, `/v3/replay/upload/${randomUUID()}?metadata=${CHUNK_METADATA}`, {
      type: 4,
      data: {},
      timestamp: CHUNK_TIME,
    }),
    fetch(`${at.apiUrl}/v3/findings`, { headers: { authorization: `Bearer ${at.sessionToken}` } }),
  ])
}
