import type { Problem } from '../../schemas/http/problems.ts'
import { upkeepKeys } from '../directory/record.ts'
import { errorFields } from '../runtime/errors.ts'
import { withDeadline } from '../runtime/lifecycle.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { type Checked, type CheckedStores, checkInstallation, type StoreName } from './check-installation.ts'
import { isOpen } from './queue-losses.ts'

/** Collaborators of a watch. */
interface InstallationWatchDeps extends CheckedStores {
  readonly logger: Logger
}

/** Time between two checks, and before the next one while a store has not answered or differs. */
const CHECK_EVERY_MS = 60_000
const CHECK_AGAIN_MS = 1_000
const CHECK_WITHIN_MS = 20_000

const NOT_CHECKED = 'the installation of its stores is not known yet'
const OF_OTHERS: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message:
    'nothing is accepted while the stores belong to different installations; send the request again after the delay',
  retryAfterSeconds: 5,
}

/** Something that runs as long as the stores that it uses are known to belong to the installation. */
interface Running {
  stop(): Promise<void> | void
}

/**
 * Follows whether the stores of a process belong to one installation, and whether the Redis of the queues still has its data
 * (README.md). A store that does not answer keeps what was known of it.
 */
export class InstallationWatch {
  readonly #deps: InstallationWatchDeps
  readonly #listeners = new Set<() => void>()
  readonly #verified = new Set<StoreName>()
  #checked: Checked = { installation: undefined, marks: new Map(), seen: undefined, fault: NOT_CHECKED, verified: [] }
  #logged: string | undefined
  #loggedLossAtMs: number | undefined
  #checking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(deps: InstallationWatchDeps) {
    this.#deps = deps
    for (const redis of [deps.directory, deps.queues.common]) redis.on('ready', () => void this.check())
    void this.check()
  }

  /** Why the process is not ready, or undefined. */
  get fault(): string | undefined {
    return this.#checked.fault
  }

  /** Whether Redis has lost data of the queues, and no operator has accepted that. */
  get hasOpenLoss(): boolean {
    return [...this.#checked.marks.values()].some(({ loss }) => loss !== undefined && isOpen(loss))
  }

  /** Returns INGEST_INFRA_UNAVAILABLE for a request that would be acknowledged, or undefined. */
  refuse(): Problem | undefined {
    return this.#checked.fault === undefined ? undefined : OF_OTHERS
  }

  /** Returns whether the process may use these stores: each was found to belong to the installation, and none differs. */
  mayUse(stores: readonly StoreName[]): boolean {
    return this.#checked.fault === undefined && stores.every(store => this.#verified.has(store))
  }

  /** Calls a function after each check. Returns a function that ends this. */
  onChecked(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Runs something while the process may use these stores. */
  whileMayUse(stores: readonly StoreName[], start: () => Running): Running {
    let running: Running | undefined
    let ended: Promise<void> | void
    const follow = () => {
      const mayRun = this.mayUse(stores)
      if (mayRun && running === undefined) running = start()
      if (mayRun || running === undefined) return
      ended = running.stop()
      running = undefined
    }
    const unfollow = this.onChecked(follow)
    follow()
    return {
      async stop() {
        unfollow()
        await ended
        await running?.stop()
      },
    }
  }

  /** Compares the stores. Calls during a check share it. */
  check(): Promise<void> {
    this.#checking ??= this.#checkOnce().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  /** Ends the checks. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async #checkOnce(): Promise<void> {
    if (this.#isStopped) return
    clearTimeout(this.#timer)
    let isComplete = false
    try {
      const checking = checkInstallation(this.#deps, this.#checked)
      const checked = await withDeadline(checking, CHECK_WITHIN_MS, 'the stores did not answer in time')
      this.#take(checked)
      isComplete = checked.fault === undefined && checked.verified.length === this.#deps.stores.length + 2
      if (isComplete && this.#deps.mayClaim) await this.#noteSeen(checked)
    } catch (error) {
      this.#deps.logger.debug(errorFields(error), 'the installation of the stores could not be checked')
    }
    if (this.#isStopped) return
    this.#timer = setTimeout(() => void this.check(), isComplete ? CHECK_EVERY_MS : CHECK_AGAIN_MS).unref()
  }

  #take(checked: Checked): void {
    this.#checked = checked
    if (checked.fault !== undefined) this.#verified.clear()
    for (const store of checked.verified) this.#verified.add(store)
    this.#report()
    for (const listener of this.#listeners) listener()
  }

  #report(): void {
    const { fault, installation, marks } = this.#checked
    const { logger } = this.#deps
    if (fault !== this.#logged && fault !== undefined)
      logger.error({ reason: fault }, 'the stores do not belong together')
    if (fault === undefined && this.#logged !== undefined)
      logger.info({ installation: installation?.id }, 'the stores belong together')
    this.#logged = fault
    const losses = [...marks.values()].flatMap(({ loss }) => (loss !== undefined && isOpen(loss) ? [loss] : []))
    const [last] = losses.sort((a, b) => b.foundAtMs - a.foundAtMs)
    if (last === undefined || last.foundAtMs === this.#loggedLossAtMs) return
    this.#loggedLossAtMs = last.foundAtMs
    const [seenAt, foundAt] = [last.seenAtMs, last.foundAtMs].map(atMs => new Date(atMs).toISOString())
    logger.error(
      { seenAt, foundAt },
      'the redis of the queues has lost its data: what it had accepted and not stored is lost',
    )
  }

  /** A directory that is full takes no writes, and the check does not depend on this one. */
  async #noteSeen({ seen }: Checked): Promise<void> {
    if (seen === undefined) return
    try {
      await this.#deps.directory.set(upkeepKeys.queuesSeen, JSON.stringify(seen))
    } catch (error) {
      this.#deps.logger.warn(errorFields(error), 'the check of the queues could not be noted in the directory')
    }
  }
}

/** Shows whether the Redis of the queues has lost data. Nothing is shown before the first check. */
export function watchQueueLosses(metrics: Metrics, watch: InstallationWatch): void {
  metrics.gauge({
    name: 'penstock_queue_store_epoch_changed',
    help: '1 if the Redis of the queues has lost its data and no operator has accepted that (penstock queues accept-loss), else 0.',
    labelNames: [],
    collect() {
      this.set(watch.hasOpenLoss ? 1 : 0)
    },
  })
}
