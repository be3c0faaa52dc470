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
  /** Receives that a unit is ready. Default: `log`. */
  readonly logReady?: (unit: string, text: string) => void
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
export function createSupervisor({ log, logReady = log, now = Date.now }: SupervisorDeps): Supervisor {
  return new UnitSupervisor({ log, logReady, now })
}

class UnitSupervisor implements Supervisor {
  readonly #log: SupervisorDeps['log']
  readonly #logReady: SupervisorDeps['log']
  readonly #now: () => number
  readonly #stopping = new AbortController()
  readonly #running = new Map<Unit, ChildProcess>()
  readonly #keepers = new Map<Unit, Promise<void>>()

  constructor({ log, logReady, now }: Required<SupervisorDeps>) {
    this.#log = log
    this.#logReady = logReady
    this.#now = now
  }

  async run(unit: Unit): Promise<void> {
    const starting = this.#startOnce(unit)
    const kept = starting.then(
      child => this.#keepRunning(unit, child),
      () => {},
    )
    this.#keepers.set(unit, kept)
    await starting
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    const stages = [...new Set([...this.#keepers.keys()].map(unit => unit.stopStage))].sort((a, b) => a - b)
    for (const stage of stages) {
      const units = [...this.#keepers.keys()].filter(unit => unit.stopStage === stage)
      await Promise.all(
        units.map(async unit => {
          await this.#running.get(unit)?.stop(unit.stopDeadlineMs)
          await this.#keepers.get(unit)
        }),
      )
    }
  }

  async killAll(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([...this.#running.values()].map(child => child.kill9()))
  }

  async #startOnce(unit: Unit): Promise<ChildProcess> {
    const startedAt = this.#now()
    const child = await unit.start(this.#stopping.signal)
    this.#running.set(unit, child)
    this.#logReady(unit.name, `ready in ${((this.#now() - startedAt) / 1_000).toFixed(1)} s (pid ${child.pid})`)
    return child
  }

  async #keepRunning(unit: Unit, first: ChildProcess): Promise<void> {
    const stopped = this.#stopping.signal
    let child: ChildProcess | undefined = first
    let failures = 0
    while (!stopped.aborted) {
      const readyAt = this.#now()
      if (child) {
        const { code, signal } = await child.exited
        this.#running.delete(unit)
        if (stopped.aborted) return
        this.#log(unit.name, `ended (${signal ?? `exit code ${code}`}), starting it again`)
        if (this.#now() - readyAt >= STABLE_AFTER_MS) failures = 0
      }
      await delay(restartDelayMs(failures++), undefined, { signal: stopped }).catch(() => {})
      if (stopped.aborted) return
      child = await this.#startOnce(unit).catch(error => {
        if (!stopped.aborted) this.#log(unit.name, `could not be started: ${describeError(error)}`)
        return undefined
      })
    }
  }
}
