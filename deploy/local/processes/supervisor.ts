import { setTimeout as delay } from 'node:timers/promises'
import { describeError } from '../../../shared/runtime/errors.ts'
import type { ChildProcess } from './child-process.ts'

/** A process to keep running. */
export interface Unit {
  readonly name: string
  /** Resolves when the process is ready. On abort, ends the process and rejects. */
  readonly start: (signal: AbortSignal) => Promise<ChildProcess>
  /** Units of a lower stage are stopped before those of a higher one. */
  readonly stopStage: number
  readonly stopDeadlineMs: number
}

/** Keeps units running until it stops them. */
export interface Supervisor {
  /** Starts a unit and resolves when it is ready for the first time. Restarts it whenever it ends. */
  run(unit: Unit): Promise<void>
  /** Stops the units stage by stage. Kills a unit that does not end within its deadline. */
  stop(): Promise<void>
  /** Kills all units at once. */
  killAll(): Promise<void>
}

/** Collaborators of a supervisor. */
interface SupervisorDeps {
  readonly log: (unit: string, text: string) => void
  readonly now?: () => number
}

/** A unit that ran at least this long restarts at once. Any other restarts after a growing delay. */
const STABLE_AFTER_MS = 10_000
const MAX_DELAY_MS = 5_000

/** Returns 0 for the first restart, then a delay that doubles from 200 ms. */
export function restartDelayMs(failures: number): number {
  return failures === 0 ? 0 : Math.min(100 * 2 ** failures, MAX_DELAY_MS)
}

/** Creates a supervisor without units. */
export function createSupervisor({ log, now = Date.now }: SupervisorDeps): Supervisor {
  const stopping = new AbortController()
  const running = new Map<Unit, ChildProcess>()
  const keepers = new Map<Unit, Promise<void>>()

  async function startOnce(unit: Unit): Promise<ChildProcess> {
    const startedAt = now()
    const child = await unit.start(stopping.signal)
    running.set(unit, child)
    log(unit.name, `ready in ${((now() - startedAt) / 1_000).toFixed(1)} s (pid ${child.pid})`)
    return child
  }

  async function keepRunning(unit: Unit, first: ChildProcess): Promise<void> {
    let child: ChildProcess | undefined = first
    let failures = 0
    while (!stopping.signal.aborted) {
      const readyAt = now()
      if (child) {
        const { code, signal } = await child.exited
        running.delete(unit)
        if (stopping.signal.aborted) return
        log(unit.name, `ended (${signal ?? `exit code ${code}`}), starting it again`)
        if (now() - readyAt >= STABLE_AFTER_MS) failures = 0
      }
      await delay(restartDelayMs(failures++), undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      child = await startOnce(unit).catch(error => {
        if (!stopping.signal.aborted) log(unit.name, `could not be started: ${describeError(error)}`)
        return undefined
      })
    }
  }

  return {
    async run(unit) {
      const starting = startOnce(unit)
      keepers.set(
        unit,
        starting.then(
          child => keepRunning(unit, child),
          () => {},
        ),
      )
      await starting
    },
    async stop() {
      stopping.abort()
      const stages = [...new Set([...keepers.keys()].map(unit => unit.stopStage))].sort((a, b) => a - b)
      for (const stage of stages) {
        const units = [...keepers.keys()].filter(unit => unit.stopStage === stage)
        await Promise.all(
          units.map(async unit => {
            await running.get(unit)?.stop(unit.stopDeadlineMs)
            await keepers.get(unit)
          }),
        )
      }
    },
    async killAll() {
      stopping.abort()
      await Promise.all([...running.values()].map(child => child.kill9()))
    },
  }
}
