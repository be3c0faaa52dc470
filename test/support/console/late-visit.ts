import { DOTNET, GO, JAVA, PYTHON } from '../../../cli/demo/exceptions.ts'
import { loadRecorded, recordedVisit } from '../../../cli/demo/recorded.ts'
import type { SessionAnswer } from '../../../schemas/http/sessions/schemas.ts'
import { until } from '../until.ts'
import { uploadChunk } from './staged-recording.ts'
import { failedOrder, metricExport, newTraceId, send, spanIdOf, traceExport } from './staged-telemetry.ts'

interface Access {
  readonly baseUrl: string
  readonly publicKey: string
  readonly sessionToken: string
}

/** Types of the exceptions that SDKs of several languages have sent. */
export const SERVER_FAILURES = [JAVA, PYTHON, GO, DOTNET]
const TRACES = 40
const META = { type: 4, data: { href: 'https://shop.example/', width: 800, height: 600 } }

/**
 * Stores a visit that was recorded by rrweb, with 40 orders that fail in it, one a second, and failures of servers, all of which
 * arrive long after they occurred; a recording of one event; and a metric of bytes. Returns the ids of the traces of the orders.
 */
export async function stageLateVisit(access: Access, session: string, startMs: number): Promise<readonly string[]> {
  const traceIds = Array.from({ length: TRACES }, newTraceId)
  for (const chunk of recordedVisit(loadRecorded(), startMs)) await uploadChunk(access, session, chunk)
  const oneEvent = { windowId: 'w', segmentId: 0, events: [{ ...META, timestamp: startMs }] }
  await uploadChunk(access, 'one-event', oneEvent)
  for (const [i, traceId] of traceIds.entries()) {
    await send(access, 'traces', traceExport(traceId, startMs + i * 1_000, failedOrder(session)))
  }
  const failed = SERVER_FAILURES.map((exception, i) => ({
    ...{ id: spanIdOf(i), name: `call ${i}`, service: `service-${i}`, startMs: i, ms: 5, isError: true, exception },
  }))
  await send(access, 'traces', traceExport(newTraceId(), startMs, failed))
  const mara = { name: 'Mara Lindqvist', email: 'mara@example.com', country: 'SE', traits: { plan: 'gold' } }
  const source = { type: 'custom', name: 'Shop' }
  for (const identifier of ['usr_1', 'usr_9001']) {
    await post(access, '/v3/session/identify', { ...mara, source, identifier, sessionId: session })
  }
  await post(access, '/v3/session', { sessionId: session, deviceId: crypto.randomUUID() })
  await send(access, 'metrics', metricExport('memory', Date.now(), 30, { unit: 'By', factor: 12_345_678 }))
  await until('everything is stored', () => isStored(access, session))
  return traceIds
}

async function isStored(access: Access, id: string): Promise<boolean> {
  const { session } = await read<Partial<SessionAnswer>>(access, `/v3/sessions/${id}`)
  const { findings = [] } = await read<{ findings?: object[] }>(access, '/v3/findings')
  const { metrics = [] } = await read<{ metrics?: object[] }>(access, '/v3/metrics')
  const isWhole = session?.traceCount === TRACES && session.identityCount === 2 && session.deviceCount === 1
  const count = 1 + SERVER_FAILURES.length
  return isWhole && session.replay?.eventCount === 101 && findings.length === count && metrics.length === 1
}

async function post({ baseUrl, publicKey }: Access, path: string, body: object): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-service-public-key': publicKey }
  const response = await fetch(baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
  if (response.status !== 200) throw new Error(`${path} was refused: ${response.status} ${await response.text()}`)
}

async function read<T>({ baseUrl, sessionToken }: Access, path: string): Promise<T> {
  const response = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${sessionToken}` } })
  return (await response.json()) as T
}
