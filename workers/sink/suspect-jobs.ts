import type { Logger } from '../../shared/runtime/logger.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import type { LockedJob, PayloadStore } from '../queue/payloads/payload-store.ts'
import type { TakenJob } from '../queue/pool.ts'
import { Suspects } from '../queue/suspects.ts'
import type { ColumnMemory } from './column-memory.ts'
import { inBatchOfItsOwn } from './name-alone.ts'
import type { BatchResumer } from './resume-batch.ts'
import type { BatchStorer } from './store-batch.ts'

interface Deps {
  readonly store: PayloadStore
  readonly storer: Pick<BatchStorer, 'setAside'>
  readonly resumer: Pick<BatchResumer, 'resume'>
  readonly memory: Pick<ColumnMemory, 'runLarge'>
  readonly logger: Logger
}

/** Jobs of a batch pool that may have ended the workers that had taken them before, or that an operator has set aside. */
export class SuspectJobs {
  readonly #deps: Deps
  readonly #runWithOthers: (job: TakenJob) => Promise<void>
  readonly #suspects: Suspects

  /** `runWithOthers` processes a job as one that is not suspected. */
  constructor(deps: Deps, runWithOthers: (job: TakenJob) => Promise<void>) {
    this.#deps = deps
    this.#runWithOthers = runWithOthers
    this.#suspects = new Suspects(deps.store, deps.logger)
  }

  /**
   * Processes a suspected job alone, or sets it aside undecoded. A batch of several jobs is resumed as
   * it is: all of its jobs were decoded when it was named, and its inserts may have been confirmed.
   */
  async process(job: TakenJob): Promise<void> {
    const { store } = this.#deps
    const { batchId, payload } = await store.look(job.jobId)
    if (payload !== null) store.giveBack(payload)
    const record = batchId === null ? undefined : await store.batch(batchId)
    if (record !== undefined && record.jobIds.length > 1) await this.#runWithOthers(job)
    else {
      await this.#suspects.run(job, {
        process: () => this.#takeAlone(job),
        setAside: reason => this.#setAside(job, reason),
      })
    }
  }

  /** Processes a job in a batch of its own. */
  async #takeAlone(job: LockedJob): Promise<void> {
    await inBatchOfItsOwn(this.#deps.store, job, async ({ batchId }) => {
      if ((await this.#deps.resumer.resume(batchId, job)) === undefined) return
      await this.#deps.memory.runLarge(job.lane, deadline => this.#deps.resumer.resume(batchId, job, deadline))
    })
  }

  /** Moves all requests of a job to the dead letters for this reason, without decoding them. */
  async #setAside(job: LockedJob, reason: Reason): Promise<void> {
    await inBatchOfItsOwn(this.#deps.store, job, named => this.#deps.storer.setAside(named, [job], reason))
  }
}
