import type { Logger } from '../../shared/runtime/logger.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import type { PayloadStore } from './payloads/payload-store.ts'
import type { TakenJob } from './pool.ts'

/** A job that this many workers have lost is suspected to end its workers. */
const SUSPECT_LOSSES = 3

/** Returns whether a job may end its workers, or an operator has decided that it is not to be decoded. */
export function isSuspected({ losses, setAside }: Pick<TakenJob, 'losses' | 'setAside'>): boolean {
  return losses >= SUSPECT_LOSSES || setAside !== undefined
}
/** A suspected job that was alone this often without an end is set aside. */
const MAX_TIMES_ALONE = 2

/** Two ways to end a suspected job. */
interface SuspectWork<Result> {
  readonly process: () => Promise<Result>
  /** Refuses every request of the job without reading it. */
  readonly setAside: (reason: Reason) => Promise<Result>
}

/**
 * Processes jobs that several workers have lost one at a time, so that a job that ends its worker is known by the number of
 * times that it was alone.
 */
export class Suspects {
  readonly #store: Pick<PayloadStore, 'countAlone' | 'forgetAlone'>
  readonly #logger: Logger
  #turn: Promise<unknown> = Promise.resolve()

  constructor(store: Pick<PayloadStore, 'countAlone' | 'forgetAlone'>, logger: Logger) {
    this.#store = store
    this.#logger = logger
  }

  /** Processes a job at once if it is not suspected, and else in turn. Sets it aside at once if an operator has decided so. */
  run<Result>(job: TakenJob, work: SuspectWork<Result>): Promise<Result> {
    if (!isSuspected(job)) return work.process()
    if (job.setAside !== undefined) return work.setAside({ label: 'set_aside', detail: job.setAside })
    const turn = this.#turn.then(async () => {
      if ((await this.#store.countAlone(job.jobId)) <= MAX_TIMES_ALONE) {
        // An attempt that ends, however it ends, has not ended its worker: an outage must not condemn the job.
        return work.process().finally(() => this.#store.forgetAlone(job.jobId))
      }
      this.#logger.error({ jobId: job.jobId, losses: job.losses }, 'a job is set aside undecoded')
      return work.setAside({ label: 'killed_worker', detail: `${job.losses} workers ended while they had it` })
    })
    this.#turn = turn.catch(() => undefined)
    return turn
  }
}
