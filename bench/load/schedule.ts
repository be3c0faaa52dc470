import type { LoadConnection } from './connection.ts'
import { LatencyHistogram } from './latency-histogram.ts'

/** Requests are due in groups, one group per tick: a timer of Node cannot do better, and a finer plan would only blur. */
const TICK_MS = 1

export interface Schedule {
  /** A connection that may send: at once when a request is due, else when the next one is. */
  offer(connection: LoadConnection): void
  start(): void
  /** No more requests become due; those that wait are still sent. */
  stop(): void
  /** Requests that are due and have no connection. */
  readonly waiting: number
  /** How late ticks came. */
  readonly lateness: LatencyHistogram
}

/** Makes requests due at a fixed rate, whether or not there is a connection to take them: the queue is the client's wait. */
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
