import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import type { LoadPlan } from './plan.ts'
import { runLoad } from './run-load.ts'

const bodies = [Buffer.from('first'), Buffer.from('second')]
let stop = () => {}
afterEach(() => stop())

/** Starts a server that responds with `answer`, and returns a plan for it. */
async function serve(
  answer: (request: IncomingMessage) => Promise<{ status: number; retryAfter?: number }>,
  plan: Partial<LoadPlan>,
) {
  const server = createServer(async (request, response) => {
    request.resume()
    const { status, retryAfter } = await answer(request)
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
    response.statusCode = status
    response.end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  stop = () => {
    server.close()
    server.closeAllConnections()
  }
  return {
    port: (server.address() as AddressInfo).port,
    path: '/drain/v1/traces',
    headers: {},
    connections: 4,
    payload: { spans: 1, pool: 2, freshIds: false },
    mode: { kind: 'closed' },
    warmUpMs: 50,
    durationMs: 300,
    ...plan,
  } satisfies LoadPlan
}

it('sends every header in turn when there are more headers than bodies', async () => {
  const varyHeaders = Array.from({ length: 21 }, (_, i) => ({ 'x-turn': String(i) }))
  const seen = new Set<string | string[] | undefined>()
  const plan = await serve(
    async request => {
      seen.add(request.headers['x-turn'])
      return { status: 200 }
    },
    { varyHeaders },
  )
  await runLoad(plan, bodies, () => {})
  expect(seen.size).toBe(varyHeaders.length)
})

it('counts the responses of a closed loop, and reports the start and end of the measured window', async () => {
  const plan = await serve(async () => ({ status: 200 }), {})
  const edges: string[] = []
  const result = await runLoad(plan, bodies, edge => edges.push(edge))
  expect(edges).toEqual(['begin', 'end'])
  expect(result.ok).toBeGreaterThan(50)
  expect(result.statuses[200]).toBeGreaterThanOrEqual(result.ok)
  expect(Object.keys(result.statuses)).toEqual(['200'])
  expect(result.faults).toEqual({})
  expect(result.bodyBytes).toBe(5.5)
})

it.each([429, 503])('waits for the Retry-After of a %i', async status => {
  const plan = await serve(async () => ({ status, retryAfter: 5 }), {})
  expect((await runLoad(plan, bodies, () => {})).statuses).toEqual({ [status]: 4 })
})

it('counts a stall of the server in the latency of every request that was due meanwhile', async () => {
  let stalled = false
  const answer = async () => {
    if (stalled) await delay(250)
    return { status: 200 }
  }
  const plan = await serve(answer, { mode: { kind: 'open', requestsPerSecond: 1_000 }, durationMs: 500 })
  setTimeout(() => {
    stalled = true
  }, 150)
  setTimeout(() => {
    stalled = false
  }, 500)
  const result = await runLoad(plan, bodies, () => {})
  // Only about eight requests were slow themselves. Most of the five hundred were due behind them.
  expect(result.latency.p50Ms).toBeGreaterThan(50)
  expect(result.latency.maxMs).toBeGreaterThan(200)
  expect(result.statuses[200]).toBeGreaterThan(400)
})

it('counts requests that are lost with their connection', async () => {
  const server = createServer(request => request.socket.destroy())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const plan = await serve(async () => ({ status: 200 }), {})
  const { port } = server.address() as AddressInfo
  const result = await runLoad({ ...plan, port }, bodies, () => {})
  server.close()
  expect(result.ok).toBe(0)
  expect(Object.values(result.faults).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(4)
})
