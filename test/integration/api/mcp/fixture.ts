import { randomBytes } from 'node:crypto'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Redis } from 'ioredis'
import { afterAll } from 'vitest'
import { TOOLS } from '../../../../api/mcp/tools/table.ts'
import { createDirectory, newId } from '../../../../shared/directory/directory.ts'
import { connectDatabase } from '../../../support/cluster/connect.ts'
import { call, putWorkspace, signToken, startApi } from '../../../support/services/api.ts'
import { issueKey, startEdge } from '../../../support/services/edge.ts'
import { startPools } from '../../../support/services/pools.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createTestDatabase } from '../../../support/services/test-database.ts'

// The queues are in a database of Redis of their own: requests that other tests left there would never be settled.
const shared = sharedServices()
const services = { ...shared, redisUrl: `${shared.redisUrl}/8` }
const redis = new Redis(services.redisUrl)
await redis.flushdb()
const directory = createDirectory(redis)
const database = await createTestDatabase(services.clickhouseUrl, `mcp_${process.pid}`)
export const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
export const api = await startApi(services, database.name)
const edge = await startEdge(services.redisUrl)
const pools = startPools(
  ['traces', 'logs', 'exceptions', 'sessions', 'symbolication', 'dead-letters', 'dead-letter-index'],
  services,
  database.name,
)
const clients: Client[] = []

afterAll(async () => {
  await Promise.all(clients.map(client => client.close()))
  await pools.stop()
  await Promise.all([api.stop(), edge.stop()])
  await clickhouse.close()
  await database.drop()
  await redis.flushdb()
  redis.disconnect()
})

/** A workspace with one surface and its reader. */
export async function newWorkspace(permissions?: Parameters<typeof putWorkspace>[1]['permissions']) {
  const slug = `agents-${randomBytes(5).toString('hex')}`
  const workspace = { id: newId('ws'), slug, userId: `user_${slug}` }
  await putWorkspace(services.redisUrl, { ...workspace, ...(permissions && { permissions }) })
  const surfaceId = newId('srf')
  const createdAt = new Date().toISOString()
  await directory.putSurface({ version: 1, id: surfaceId, workspaceId: workspace.id, name: 'Shop', createdAt })
  const key = await issueKey(directory, { workspaceId: workspace.id, surfaceId })
  const send = async (path: string, body: unknown) => {
    const headers = { 'x-service-public-key': key }
    if (body instanceof Uint8Array) {
      const protobuf = { ...headers, 'content-type': 'application/x-protobuf' }
      const { status } = await fetch(edge.baseUrl + path, {
        method: 'POST',
        headers: protobuf,
        body: Buffer.from(body),
      })
      if (status !== 200) throw new Error(`answered ${status}`)
      return
    }
    const answer = await call(edge.baseUrl, `POST ${path}`, { body, headers })
    if (answer.status !== 200) throw new Error(`answered ${answer.status} ${JSON.stringify(answer.body)}`)
  }
  return { ...workspace, surfaceId, send, bearer: await signToken({ org: slug, sub: workspace.userId }) }
}

/** Connects the client of the SDK: by the handshake of 2025, or by the revision of 2026 without one. */
export async function connect(bearer: string | undefined, mode: 'legacy' | '2026-07-28' = 'legacy'): Promise<Client> {
  const versionNegotiation = { mode: mode === 'legacy' ? mode : { pin: mode } } as const
  const client = new Client({ name: 'tests', version: '1' }, { versionNegotiation })
  const headers: Record<string, string> = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${api.baseUrl}/mcp`), { requestInit: { headers } }))
  clients.push(client)
  return client
}

/** A result of a tool that was not refused. */
export interface Called {
  readonly text: string
  readonly answer: Record<string, unknown> & {
    readonly evidence: { readonly readAt: string; readonly settledBefore?: string; readonly completeness?: unknown }
    readonly cut: readonly string[]
  }
}

/** Calls a tool, and compares its answer with its schema. */
export async function use(client: Client, name: string, args: Record<string, unknown> = {}): Promise<Called> {
  const result = await client.callTool({ name, arguments: args })
  const [content] = result.content
  const text = content?.type === 'text' ? content.text : ''
  if (result.isError) throw new Error(text)
  TOOLS.find(tool => tool.name === name)?.answerSchema.parse(result.structuredContent)
  return { text, answer: result.structuredContent as Called['answer'] }
}

/** Calls a tool that is refused, and returns its message. */
export async function refusal(client: Client, name: string, args: Record<string, unknown>): Promise<string> {
  const { isError, content } = await client.callTool({ name, arguments: args })
  if (!isError || content[0]?.type !== 'text') throw new Error('the call was not refused')
  return content[0].text
}

const attributesOf = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([key, stringValue]) => ({ key, value: { stringValue } }))

/** A span to send; times are Unix ms. */
interface SentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startMs: number
  readonly endMs: number
  readonly attributes?: Readonly<Record<string, string>>
  readonly exception?: Readonly<Record<string, string>>
}

/** An export of spans. Those with an exception have failed. */
export function exportOf(spans: readonly SentSpan[]) {
  const nanos = (ms: number) => `${ms}000000`
  const sent = spans.map(({ startMs, endMs, attributes = {}, exception, ...span }) => ({
    ...span,
    ...{ startTimeUnixNano: nanos(startMs), endTimeUnixNano: nanos(endMs), attributes: attributesOf(attributes) },
    ...(exception && {
      status: { code: 2, message: exception['exception.message'] },
      events: [{ name: 'exception', timeUnixNano: nanos(endMs), attributes: attributesOf(exception) }],
    }),
  }))
  const resource = { attributes: attributesOf({ 'service.name': 'shop', 'service.version': '1.4.0' }) }
  return { resourceSpans: [{ resource, scopeSpans: [{ spans: sent }] }] }
}

/** An export of a log record of a span. */
export function logOf(
  body: string,
  atMs: number,
  { traceId, spanId, sessionId }: { traceId: string; spanId: string; sessionId: string },
) {
  const attributes = attributesOf({ 'session.id': sessionId, 'http.route': '/cart' })
  const record = { traceId, spanId, severityNumber: 17, timeUnixNano: `${atMs}000000`, body: { stringValue: body } }
  return { resourceLogs: [{ scopeLogs: [{ logRecords: [{ ...record, attributes }] }] }] }
}
