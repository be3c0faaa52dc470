import type { LoadConnection } from './connection.ts'
import { LatencyHistogram } from './latency-histogram.ts'

/** Interval at which groups of requests become due. A timer of Node cannot be more precise. */
const TICK_MS = 1

/** A schedule of requests in an open loop. */
export interface Schedule {
  /** Offers a free connection. It sends at once if a request is due, or when the next one is. */
  offer(connection: LoadConnection): void
  /** Starts to make requests due. */
  start(): void
  /** Stops making requests due. Requests that already wait are still sent. */
  stop(): void
  /** Number of requests that are due and have no connection yet. */
  readonly waiting: number
  /** Delay of the ticks. */
  readonly lateness: LatencyHistogram
}

/** Makes requests due at a fixed rate, with or without a free connection. The time in this queue counts as latency. */
export function createSchedule(
  requestsPerSecond: number,
  send: (connection: LoadConnection, dueAt: number) => void,
): Schedule {
  const perTick = (requestsPerSecond * TICK_MS) / 1_000
  const lateness = new LatencyHistogram()
  const idle: LoadConnection[] = []
  let due: number[] = []
  let taken = 0
  let timer: NodeJS.Timeout | undefined
  let startedAt = 0
  let ticks = 0
  let owed = 0

  function tick(): void {
    const now = performance.now()
    while (startedAt + ticks * TICK_MS <= now) {
      const dueAt = startedAt + ticks * TICK_MS
      lateness.record(now - dueAt)
      for (owed += perTick; owed >= 1; owed--) due.push(dueAt)
      ticks++
    }
    while (taken < due.length) {
      const connection = takeIdle()
      if (connection === undefined) break
      send(connection, next())
    }
  }

  function takeIdle(): LoadConnection | undefined {
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (connection.isOpen && !connection.inFlight) return connection
    }
    return undefined
  }

  function next(): number {
    const dueAt = due[taken++] as number
    if (taken > 10_000 && taken * 2 > due.length) {
      due = due.slice(taken)
      taken = 0
    }
    return dueAt
  }

  return {
    lateness,
    get waiting() {
      return due.length - taken
    },
    offer(connection) {
      if (taken < due.length) send(connection, next())
      else idle.push(connection)
    },
    start() {
      startedAt = performance.now()
      timer = setInterval(tick, TICK_MS)
    },
    stop: () => clearInterval(timer),
  }
}
