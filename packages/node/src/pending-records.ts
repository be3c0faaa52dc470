import { type ExportResult, ExportResultCode } from '@opentelemetry/core'

/**
 * The records that were not sent yet. Processors of the SDK keep theirs private and send them asynchronously, so a process that
 * ends at once would lose them.
 */
interface PendingRecords<Item> {
  add(record: Item): void
  remove(records: readonly Item[]): void
  /** Returns all and forgets them. */
  take(): Item[]
}

/** A processor drops records above its own limit; `maxCount` is a little more, and the oldest ones go first. */
export function createPendingRecords<Item>(maxCount: number): PendingRecords<Item> {
  const records = new Set<Item>()
  return {
    add(record) {
      records.add(record)
      if (records.size <= maxCount) return
      for (const oldest of records) {
        records.delete(oldest)
        break
      }
    },
    remove(sent) {
      for (const record of sent) records.delete(record)
    },
    take() {
      const taken = [...records]
      records.clear()
      return taken
    },
  }
}

interface Exporter<Item> {
  export(records: Item[], done: (result: ExportResult) => void): void
  shutdown(): Promise<void>
  forceFlush(): Promise<void>
}

/** Returns the exporter, whose records are pending until it has sent or given them up. */
export function tracked<Item>(
  exporter: Exporter<Item>,
  pending: PendingRecords<Item>,
  onFailure: (error: Error | undefined) => void,
): Exporter<Item> {
  return {
    export(records, done) {
      exporter.export(records, result => {
        pending.remove(records)
        if (result.code !== ExportResultCode.SUCCESS) onFailure(result.error)
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  }
}
