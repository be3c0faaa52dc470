import { setTimeout as delay } from 'node:timers/promises'
import { LoadConnection } from './connection.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import type { LoadPlan, LoadResult } from './plan.ts'
import { createChanges, renew } from './renewal.ts'
import { prepareRequest } from './requests.ts'
import type { ResponseHead } from './response-reader.ts'
import { createSchedule } from './schedule.ts'

/** Time limit for the last responses after the load has ended. */
const LAST_ANSWERS_MS = 30_000

/** Runs one load. Calls `notify` at the start and end of the measured window. */
export async function runLoad(
  plan: LoadPlan,
  bodies: readonly Buffer[],
  notify: (edge: 'begin' | 'end') => void,
): Promise<LoadResult> {
  const nextChange = createChanges(Date.now())
  const latency = new LatencyHistogram()
  const statuses: Record<string, number> = {}
  const faults: Record<string, number> = {}
  let window: { start: number; end: number } | undefined
  let sending = true
  let ok = 0

  function send(connection: LoadConnection, dueAt: number): void {
    const request = connection.takeRequest()
    if (plan.payload.freshIds) {
      renew(request.bytes, request.renewable, nextChange(), performance.timeOrigin + performance.now())
    }
    connection.send(request, dueAt)
  }

  const schedule = plan.mode.kind === 'open' ? createSchedule(plan.mode.requestsPerSecond, send) : undefined

  function onFree(connection: LoadConnection): void {
    if (schedule) schedule.offer(connection)
    else if (sending && connection.isOpen && !connection.inFlight) send(connection, performance.now())
  }

  function onAnswer(connection: LoadConnection, head: ResponseHead): void {
    const now = performance.now()
    statuses[head.status] = (statuses[head.status] ?? 0) + 1
    if (window === undefined) return
    if (head.status === 200 && now < window.end) ok++
    const counted = schedule ? connection.dueAt >= window.start && connection.dueAt < window.end : now < window.end
    if (counted) latency.record(now - connection.dueAt)
  }

  const connections = shareOut(plan, bodies).map(
    requests =>
      new LoadConnection(plan.port, requests, {
        onFree,
        onAnswer(connection, head) {
          onAnswer(connection, head)
          return !schedule && head.status === 429 ? (head.retryAfterSeconds ?? 1) * 1_000 : 0
        },
        onFault: (_connection, code) => {
          faults[code] = (faults[code] ?? 0) + 1
        },
      }),
  )
  try {
    schedule?.start()
    await delay(plan.warmUpMs)
    notify('begin')
    const start = performance.now()
    const cpu = process.cpuUsage()
    window = { start, end: start + plan.durationMs }
    schedule?.lateness.reset()
    await delay(plan.durationMs)
    const end = performance.now()
    const { user, system } = process.cpuUsage(cpu)
    notify('end')
    sending = false
    schedule?.stop()
    await lastAnswers(connections, () => schedule?.waiting ?? 0)
    return {
      seconds: (Math.min(end, window.end) - start) / 1_000,
      ok,
      latency: latency.percentiles(),
      lateness: (schedule?.lateness ?? new LatencyHistogram()).percentiles(),
      statuses,
      faults,
      bodyBytes: bodies.reduce((sum, body) => sum + body.length, 0) / bodies.length,
      cpuSeconds: (user + system) / 1e6,
    }
  } finally {
    for (const connection of connections) connection.close()
  }
}

/**
 * Returns the requests of each connection: its share of the pool, or a copy of one request if there are more connections
 * than requests. If there are more headers than bodies, bodies are sent again with the other headers.
 */
function shareOut(plan: LoadPlan, bodies: readonly Buffer[]) {
  const count = Math.max(bodies.length, plan.varyHeaders?.length ?? 0)
  const requestAt = (index: number) => prepareRequest(plan, bodies[index % bodies.length] as Buffer, index)
  return Array.from({ length: plan.connections }, (_, i) => {
    const share = Array.from({ length: Math.ceil((count - i) / plan.connections) }, (_, turn) =>
      requestAt(i + turn * plan.connections),
    )
    return share.length > 0 ? share : [requestAt(i)]
  })
}

async function lastAnswers(connections: readonly LoadConnection[], waiting: () => number): Promise<void> {
  const deadline = performance.now() + LAST_ANSWERS_MS
  while (waiting() > 0 || connections.some(connection => connection.inFlight)) {
    if (performance.now() > deadline) throw new Error(`requests had no response after ${LAST_ANSWERS_MS} ms`)
    await delay(2)
  }
}
