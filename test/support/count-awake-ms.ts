const TICK_MS = 5

/** Counts for how long this process is awake. */
interface AwakeClock {
  readonly ms: number
  stop(): void
}

/**
 * Starts a clock of which each tick counts as at most 5 ms, so that a pause of the machine does not count. It measures
 * deadlines that are met by waiting; `leastCpuMs` measures computing.
 */
export function startAwakeClock(): AwakeClock {
  let ticks = 0
  const timer = setInterval(() => ticks++, TICK_MS)
  timer.unref()
  return {
    get ms() {
      return ticks * TICK_MS
    },
    stop: () => clearInterval(timer),
  }
}

/** Starts such a clock; the returned function stops it and returns its milliseconds. */
export function countAwakeMs(): () => number {
  const clock = startAwakeClock()
  return () => {
    clock.stop()
    return clock.ms
  }
}
