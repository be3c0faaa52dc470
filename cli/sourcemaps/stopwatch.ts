export type Phase = 'preflight' | 'discover' | 'createRelease' | 'upload' | 'cleanup'

/** Whole milliseconds of each phase of an upload, and of all of it (spec 2.8). */
export type Timings = Readonly<Record<Phase | 'total', number>>

export interface Stopwatch {
  /** From now on time goes to this phase; a phase may be entered again. */
  enter(phase: Phase): void
  timings(): Timings
}

export function createStopwatch(now: () => number): Stopwatch {
  const startedAt = now()
  const spent: Record<Phase, number> = { preflight: 0, discover: 0, createRelease: 0, upload: 0, cleanup: 0 }
  let phase: Phase = 'preflight'
  let since = startedAt
  function settle(): void {
    const at = now()
    spent[phase] += Math.max(0, Math.round(at - since))
    since = at
  }
  return {
    enter(next) {
      settle()
      phase = next
    },
    timings() {
      settle()
      return { ...spent, total: Math.max(0, Math.round(since - startedAt)) }
    },
  }
}
