import { setTimeout as delay } from 'node:timers/promises'
import { type ConnectionEvents, LoadConnection } from './connection.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import type { LoadPlan, LoadResult } from './plan.ts'
import { createChanges, renew } from './renewal.ts'
import { isGzip, type PreparedRequest, prepareRequest } from './requests.ts'
import type { ResponseHead } from './response-reader.ts'
import { createSchedule, type Schedule } from './schedule.ts'

/** Time limit for the last responses after the load has ended. */
const LAST_ANSWERS_MS = 30_000

/** Runs one load. Calls `notify` at the start and end of the measured window. */
export function runLoad(
  plan: LoadPlan,
  bodies: readonly Buffer[],
  notify: (edge: 'begin' | 'end') => void,
): Promise<LoadResult> {
  return new LoadRun(plan).run(bodies, notify)
}

/** The state of one load. */
class LoadRun {
  readonly #plan: LoadPlan
  readonly #schedule: Schedule | undefined
  readonly #nextChange = createChanges(Date.now())
  readonly #latency = new LatencyHistogram()
  readonly #statuses: Record<string, number> = {}
  readonly #faults: Record<string, number> = {}
  readonly #limitReached = new AbortController()
  #window: { readonly start: number; readonly end: number } | undefined
  #isSending = true
  #ok = 0

  constructor(plan: LoadPlan) {
    this.#plan = plan
    const { mode } = plan
    const send = (connection: LoadConnection, dueAt: number) => this.#send(connection, dueAt)
    this.#schedule = mode.kind === 'open' ? createSchedule(mode.requestsPerSecond, send) : undefined
  }

  async run(bodies: readonly Buffer[], notify: (edge: 'begin' | 'end') => void): Promise<LoadResult> {
    const connections = this.#open(bodies)
    const schedule = this.#schedule
    try {
      schedule?.start()
      await delay(this.#plan.warmUpMs)
      notify('begin')
      const start = performance.now()
      const cpu = process.cpuUsage()
      const window = { start, end: start + this.#plan.durationMs }
      this.#window = window
      schedule?.lateness.reset()
      await delay(this.#plan.durationMs, undefined, { signal: this.#limitReached.signal }).catch(() => {})
      const end = performance.now()
      const { user, system } = process.cpuUsage(cpu)
      notify('end')
      this.#isSending = false
      schedule?.stop()
      await lastAnswers(connections, () => schedule?.waiting ?? 0)
      return {
        seconds: (Math.min(end, window.end) - start) / 1_000,
        ok: this.#ok,
        latency: this.#latency.percentiles(),
        lateness: (schedule?.lateness ?? new LatencyHistogram()).percentiles(),
        statuses: this.#statuses,
        faults: this.#faults,
        bodyBytes: bodies.reduce((sum, body) => sum + body.length, 0) / bodies.length,
        cpuSeconds: (user + system) / 1e6,
      }
    } finally {
      for (const connection of connections) connection.close()
    }
  }

  #open(bodies: readonly Buffer[]): LoadConnection[] {
    const events: ConnectionEvents = {
      onFree: connection => this.#onFree(connection),
      onAnswer: (connection, head) => this.#onAnswer(connection, head),
      onFault: (_connection, code) => {
        this.#faults[code] = (this.#faults[code] ?? 0) + 1
      },
    }
    return shareOut(this.#plan, bodies).map(requests => new LoadConnection(this.#plan.port, requests, events))
  }

  #send(connection: LoadConnection, dueAt: number): void {
    const request = connection.takeRequest()
    if (this.#plan.payload.freshIds) {
      renew(request.bytes, request.renewable, this.#nextChange(), performance.timeOrigin + performance.now())
    }
    connection.send(request, dueAt)
  }

  #onFree(connection: LoadConnection): void {
    if (this.#schedule) this.#schedule.offer(connection)
    else if (this.#isSending && connection.isOpen && !connection.inFlight) this.#send(connection, performance.now())
  }

  /** Counts a response. Returns the milliseconds that the connection has to wait. */
  #onAnswer({ dueAt }: LoadConnection, { status, retryAfterSeconds = 1 }: ResponseHead): number {
    const now = performance.now()
    const answers = (this.#statuses[status] ?? 0) + 1
    this.#statuses[status] = answers
    if (status === 200 && answers === this.#plan.requestLimit) this.#limitReached.abort()
    const window = this.#window
    if (window !== undefined) {
      if (status === 200 && now < window.end) this.#ok++
      const counts = this.#schedule ? dueAt >= window.start && dueAt < window.end : now < window.end
      if (counts) this.#latency.record(now - dueAt)
    }
    const { mode } = this.#plan
    const isRefused = status === 429 || status === 503
    return mode.kind === 'closed' && !mode.impatient && isRefused ? retryAfterSeconds * 1_000 : 0
  }
}

/**
 * Returns the requests of each connection: its share of the pool, or a copy of one request if there are more connections
 * than requests. If there are more headers than bodies, bodies are sent again with the other headers. If some bodies are
 * compressed and others are not, each connection sends them alternately.
 */
function shareOut(plan: LoadPlan, bodies: readonly Buffer[]): PreparedRequest[][] {
  const [packed, plain] = [bodies.filter(isGzip), bodies.filter(body => !isGzip(body))]
  if (packed.length === 0 || plain.length === 0) return shareOfEach(plan, bodies)
  const sharesOfPlain = shareOfEach(plan, plain)
  return shareOfEach(plan, packed).map((share, i) => {
    const others = sharesOfPlain[i] as PreparedRequest[]
    return share.flatMap((request, turn) => [others[turn % others.length] as PreparedRequest, request])
  })
}

function shareOfEach(plan: LoadPlan, bodies: readonly Buffer[]): PreparedRequest[][] {
  const count = bodies.length
  const requestAt = (index: number) => prepareRequest(plan, bodies[index % bodies.length] as Buffer)
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
