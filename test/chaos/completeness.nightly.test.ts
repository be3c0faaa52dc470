import { randomBytes, randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type TraceColumns, traceColumnsSchema } from '../../schemas/http/traces/schemas.ts'
import { createDirectory, newId } from '../../shared/directory/directory.ts'
import { untilSettled } from '../support/chaos/compare-ledger.ts'
import { PROCESS_FAULTS, SERVER_FAULTS } from '../support/chaos/faults.ts'
import { type Installation, startInstallation } from '../support/chaos/installation.ts'
import { runFaults } from '../support/chaos/run-faults.ts'
import { call, putWorkspace, signToken, startApi, type TestApi } from '../support/services/api.ts'
import { issueKey } from '../support/services/edge.ts'
import { until } from '../support/until.ts'

/** Traces that are sent, each a run of its own. */
const TRACES = Number(process.env.COMPLETENESS_TRACES || 1_000)
const SEED = randomInt(2 ** 31)
const SENDERS = 12
/** Longest time between two requests of a trace. */
const LATE_MS = 3_000
const REQUEST_TIMEOUT_MS = 5_000
const SETTLE_DEADLINE_MS = 180_000
/** One trace in twenty never gets its root. */
const ROOTLESS = 20
/** Time in which each kind of fault happens once. */
const ALL_KINDS_MS = 10_000
const KINDS = ['process: kill', 'redis: kill', 'clickhouse: kill']

/** A trace as its client knows it. */
interface SentTrace {
  readonly traceId: string
  readonly hasRoot: boolean
  /** When the client had the acknowledgement of each span, in Unix ms. */
  readonly acknowledgedAtMs: Map<string, number>
  isSent: boolean
}

let installation: Installation
let api: TestApi
let bearer: string
let key: string

beforeAll(async () => {
  installation = await startInstallation({ edges: 2, workers: 2 })
  const { redis, directory, clickhouse } = installation.servers
  const slug = `whole-${randomBytes(5).toString('hex')}`
  const workspace = { id: newId('ws'), slug, userId: `user_${slug}` }
  await putWorkspace(directory.service.url, workspace)
  key = await issueKey(createDirectory(installation.directory), { workspaceId: workspace.id, surfaceId: newId('srf') })
  bearer = await signToken({ org: slug, sub: workspace.userId })
  const urls = { redisUrl: redis.service.url, clickhouseUrl: clickhouse.service.url }
  api = await startApi(urls, 'penstock', { DIRECTORY_REDIS_URL: directory.service.url })
})

afterAll(async () => {
  await api?.stop()
  await installation?.stop()
})

it(`calls none of ${TRACES} traces complete without a span that was accepted before, whatever is killed`, async () => {
  const traces: SentTrace[] = []
  const wrong: string[] = []
  const seen = { complete: 0, no_gaps: 0, incomplete: 0, unavailable: 0 }
  let isSending = true

  async function assess(trace: SentTrace): Promise<TraceColumns | undefined> {
    const { status, body } = await call(api.baseUrl, `GET /v3/traces/${trace.traceId}`, { bearer })
    if (status === 503) seen.unavailable++
    if (status !== 200) return undefined
    const columns = traceColumnsSchema.parse(body)
    const { state, settledBefore } = columns.completeness
    seen[state]++
    const ids = new Set(columns.spans.ids.match(/.{16}/g))
    const settledBeforeMs = settledBefore === undefined ? 0 : Date.parse(settledBefore)
    for (const [spanId, atMs] of trace.acknowledgedAtMs) {
      if (atMs < settledBeforeMs && !ids.has(spanId)) wrong.push(`${trace.traceId}: ${state} without ${spanId}`)
    }
    if (state === 'complete' && !trace.hasRoot) wrong.push(`${trace.traceId}: complete without its root`)
    return columns
  }

  const reading = (async () => {
    while (isSending) {
      const trace = traces[Math.max(0, traces.length - 1 - randomInt(60))]
      if (trace === undefined) await delay(20)
      else await assess(trace)
    }
  })()
  const sending = Promise.all(
    Array.from({ length: SENDERS }, async (_, sender) => {
      for (let number = sender; number < TRACES; number += SENDERS) {
        const trace = newTrace(number)
        traces.push(trace)
        await sendTrace(trace)
      }
    }),
  )
  const deck = [...PROCESS_FAULTS, ...SERVER_FAULTS].filter(({ kind }) => KINDS.includes(kind))
  expect(deck.map(({ kind }) => kind).sort()).toEqual([...KINDS].sort())
  let faults: Record<string, number> = {}
  const failing = (async () => {
    for (let run = 0; traces.length < TRACES || traces.some(({ isSent }) => !isSent); run++) {
      const counts = await runFaults(installation, deck, { seed: SEED + run, forMs: ALL_KINDS_MS, print: console.log })
      faults = Object.fromEntries(KINDS.map(kind => [kind, (faults[kind] ?? 0) + (counts[kind] ?? 0)]))
    }
  })()
  await Promise.all([sending, failing])
  isSending = false
  await reading
  console.log(`seed ${SEED}, ${JSON.stringify(faults)}, answers ${JSON.stringify(seen)}`)
  expect(wrong).toEqual([])
  expect(Object.values(faults).every(count => count > 0)).toBe(true)
  expect(seen.complete).toBeGreaterThan(0)

  await untilSettled(installation, SETTLE_DEADLINE_MS)
  for (const trace of traces) {
    const columns = await until('the trace can be read', () => assess(trace))
    expect(columns.completeness).toMatchObject({ state: trace.hasRoot ? 'complete' : 'incomplete' })
    expect(new Set(columns.spans.ids.match(/.{16}/g))).toEqual(new Set(trace.acknowledgedAtMs.keys()))
  }
  expect(wrong).toEqual([])
  expect(installation.unexpectedEnds()).toEqual([])
})

function newTrace(number: number): SentTrace {
  const hasRoot = number % ROOTLESS !== 0
  return { traceId: randomBytes(16).toString('hex'), hasRoot, acknowledgedAtMs: new Map(), isSent: false }
}

/** Sends the spans of a trace in some requests, children first, each of them until it is acknowledged. */
async function sendTrace(trace: SentTrace): Promise<void> {
  const spanIds = Array.from({ length: randomInt(2, 8) }, () => randomBytes(8).toString('hex'))
  const spans = spanIds
    .map((spanId, i) => ({ spanId, parentSpanId: i === 0 ? '' : (spanIds[randomInt(i)] ?? '') }))
    .reverse()
  if (!trace.hasRoot) spans.pop()
  while (spans.length > 0) {
    const sent = spans.splice(0, randomInt(1, 4))
    while (!(await sendSpans(trace.traceId, sent))) await delay(200)
    for (const { spanId } of sent) trace.acknowledgedAtMs.set(spanId, Date.now())
    await delay(randomInt(5) === 0 ? randomInt(LATE_MS) : randomInt(100))
  }
  trace.isSent = true
}

/** Sends spans to one of the edges. Returns whether it has acknowledged them. */
async function sendSpans(
  traceId: string,
  spans: readonly { spanId: string; parentSpanId?: string }[],
): Promise<boolean> {
  const startTimeUnixNano = String(BigInt(Date.now()) * 1_000_000n)
  const times = { startTimeUnixNano, endTimeUnixNano: startTimeUnixNano }
  const sent = spans.map(span => ({ ...span, ...times, traceId, name: 'n' }))
  const edgeUrl = installation.edgeUrls[randomInt(installation.edgeUrls.length)] ?? ''
  try {
    const response = await fetch(`${edgeUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': key },
      body: JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: sent }] }] }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    })
    await response.arrayBuffer()
    return response.status === 200
  } catch (error) {
    // The edge was killed: a client sends the same request again.
    if (error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError')) return false
    throw error
  }
}
