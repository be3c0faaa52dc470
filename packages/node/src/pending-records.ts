/**
 * The records that were not sent yet. Processors of the SDK keep theirs private and send them asynchronously, so a process that
 * ends at once would lose them.
 */
export interface PendingRecords<Item> {
  add(record: Item): void
  remove(records: readonly Item[]): void
  /** Returns all and forgets them. */
  take(): Item[]
}

/** A processor drops records above its own limit. `maxCount` is more, and the oldest ones go first. */
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
