import type { IngestLogEntry } from '../../clickhouse/tables/ingest-log-table.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { RejectionLabel } from '../../shared/runtime/reason.ts'
import { addShare } from '../queue/payloads/payload-store.ts'
import { increment } from './log-entries.ts'

/** Counters of a batch. */
export class BatchStats {
  frames = 0
  payloadBytes = 0
  rows = 0
  /** Requests of which nothing is stored. */
  refused = 0
  /** Cost of the requests by surface. */
  readonly shares = new Map<string, number>()
  readonly rejectedRows = new Map<RejectionLabel, number>()

  /** Counts the requests of a job. */
  addJob(frames: readonly PayloadFrame[], payloadBytes: number, refused: number): void {
    this.frames += frames.length
    this.payloadBytes += payloadBytes
    this.refused += refused
    for (const frame of frames) addShare(this.shares, frame)
  }

  /** Counts the records that are left out of a request. */
  addRejected({ rejected }: Pick<IngestLogEntry, 'rejected'>): void {
    for (const [label, count] of rejected) increment(this.rejectedRows, label as RejectionLabel, count)
  }
}
