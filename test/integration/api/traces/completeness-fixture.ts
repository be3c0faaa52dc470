import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, afterEach, expect } from 'vitest'
import { type TraceCompleteness, traceCompletenessSchema } from '../../../../schemas/http/traces/schemas.ts'
import type { QueueName } from '../../../../schemas/queues/names.ts'
import { createDirectory, newId } from '../../../../shared/directory/directory.ts'
import { connectDatabase } from '../../../support/cluster/connect.ts'
import { connectLetters } from '../../../support/dead-letters.ts'
import { call, putWorkspace, signToken, startApi } from '../../../support/services/api.ts'
import { issueKey, startEdge } from '../../../support/services/edge.ts'
import { startPools, type TestPools } from '../../../support/services/pools.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { createTestDatabase } from '../../../support/services/test-database.ts'
import { until } from '../../../support/until.ts'

export const QUEUES: readonly QueueName[] = ['traces', 'exceptions', 'dead-letters', 'dead-letter-index']

// The queues are in a database of Redis of their own: requests that other tests left there would never be settled.
const shared = sharedServices()
export const services = { ...shared, redisUrl: `${shared.redisUrl}/7` }
export const database = await createTestDatabase(services.clickhouseUrl, `completeness_${process.pid}`)
export const client = connectDatabase(services.clickhouseUrl, database.name)
export const letters = connectLetters(services, services.redisUrl, client)
await letters.redis.flushdb()
const directoryRedis = new Redis(services.redisUrl)
const directory = createDirectory(directoryRedis)
const api = await startApi(services, database.name)
const edge = await startEdge(services.redisUrl)
let pools: TestPools | undefined = start()

afterEach(async () => {
  await client.command({ query: 'ALTER TABLE spans DROP CONSTRAINT IF EXISTS refused' })
  pools ??= start()
})

afterAll(async () => {
  await pools?.stop()
  await Promise.all([api.stop(), edge.stop()])
  await letters.redis.flushdb()
  await letters.close()
  await directoryRedis.quit()
  await client.close()
  await database.drop()
})

function start(settings: Record<string, string> = {}): TestPools {
  return startPools(QUEUES, services, database.name, settings)
}

/** Starts the pools again. They are started after each test too. */
export function restartPools(settings: Record<string, string> = {}): void {
  pools = start(settings)
}

/** Stops the pools, so that requests wait. */
export async function stopPools(): Promise<void> {
  await pools?.stop()
  pools = undefined
}

/** A span of a request. */
interface SentSpan {
  /** 0 is refused. */
  readonly spanId: number
  readonly parent?: number
  readonly name?: string
  readonly flags?: number
}

/** A workspace of its own, because losses are those of a workspace. */
export async function newWorkspace() {
  const slug = `whole-${randomBytes(5).toString('hex')}`
  const workspace = { id: newId('ws'), slug, userId: `user_${slug}` }
  await putWorkspace(services.redisUrl, workspace)
  const surfaceId = newId('srf')
  const key = await issueKey(directory, { workspaceId: workspace.id, surfaceId })
  const bearer = await signToken({ org: slug, sub: workspace.userId })
  const traceId = randomBytes(16).toString('hex')
  const ask = (path: string) => call(api.baseUrl, `GET ${path}`, { bearer })
  async function sendBody(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>): Promise<number> {
    const response = await fetch(`${edge.baseUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': key, ...headers },
      body,
    })
    return response.status
  }
  async function send(spans: readonly SentSpan[], contentType = 'application/json'): Promise<number> {
    const started = BigInt(Date.now()) * 1_000_000n
    const sent = spans.map(({ spanId, parent, name = 'n', flags = 0 }) => ({
      ...{
        traceId,
        spanId: hex(spanId),
        name,
        flags,
        startTimeUnixNano: String(started),
        endTimeUnixNano: String(started),
      },
      ...(parent === undefined ? {} : { parentSpanId: hex(parent) }),
    }))
    const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: sent }] }] })
    return sendBody(body, { 'content-type': contentType })
  }
  async function completeness(): Promise<TraceCompleteness> {
    const { status, body } = await ask(`/v3/traces/${traceId}/completeness`)
    expect({ status, body }).toMatchObject({ status: 200 })
    return traceCompletenessSchema.parse(body)
  }
  return {
    ...{ workspaceId: workspace.id, surfaceId, traceId, bearer, ask, send, sendBody, completeness },
    /** Sends spans and waits until they are settled. */
    async store(spans: readonly SentSpan[]): Promise<void> {
      expect(await send(spans)).toBe(200)
      await letters.untilDone(...QUEUES)
    },
    /** Waits until the trace is assessed so, which follows the clock of Redis. */
    untilState: (state: TraceCompleteness['state']) =>
      until(`the trace is ${state}`, async () => {
        const assessed = await completeness()
        return assessed.state === state ? assessed : undefined
      }),
  }
}

/** Returns the id of a span. */
export const hex = (spanId: number) => spanId.toString(16).padStart(16, '0')
