import { afterAll, expect } from 'vitest'
import { type Trace, traceSchema } from '../../../../schemas/http/traces/schemas.ts'
import {
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  START,
  type StoredSpan,
  signToken,
  startApi,
} from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

export const DATABASE = `api_trace_${process.pid}`
export const FINDING = `fnd_${'a'.repeat(26)}`
export const OTHER_FINDING = `fnd_${'b'.repeat(26)}`

const services = sharedServices()
export const client = await createDatabase(services.clickhouseUrl, DATABASE)
await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
await putWorkspace(services.redisUrl, {
  id: 'ws_1',
  slug: 'acme',
  userId: 'user_limited',
  permissions: ['org:sessions:read'],
})
export const api = await startApi(services, DATABASE)
const token = await signToken()
let traces = 0

afterAll(async () => {
  await api.stop()
  await client.command({ query: `DROP DATABASE ${DATABASE}` })
  await client.close()
})

export function nextTraceId(): string {
  return (0xabc_0000 + traces++).toString(16).padStart(32, '0')
}

export async function store(spans: Omit<StoredSpan, 'traceId'>[]): Promise<string> {
  const traceId = nextTraceId()
  await insertSpans(
    client,
    spans.map(stored => ({ ...stored, traceId })),
  )
  await insertExceptions(client, [{ findingId: FINDING, traceId }])
  return traceId
}

export async function read(traceId: string, query = ''): Promise<Trace> {
  const { status, body } = await ask(traceId, query)
  expect({ status, body }).toMatchObject({ status: 200 })
  return traceSchema.parse(body)
}

export async function ask(traceId: string, query = '', findingId = FINDING, bearer: string | null = token) {
  const response = await fetch(`${api.baseUrl}/v3/findings/${findingId}/traces/${traceId}${query}`, {
    headers: bearer === null ? {} : { authorization: `Bearer ${bearer}` },
  })
  expect(response.headers.get('content-type')).toBe('application/json')
  return { status: response.status, body: (await response.json()) as unknown }
}

export const id = (number: number) => number.toString(16).padStart(16, '0')
export const span = (number: number) => ({ spanId: id(number) })
export const child = (number: number, parent: number, startsAfter: number) => ({
  spanId: id(number),
  parentSpanId: parent === 0 ? '' : id(parent),
  startTimeUnixNano: START + BigInt(startsAfter),
})
