import { ADMITTED_QUEUES } from '../schemas/queues/names.ts'

const LOGGED_QUEUES = [...ADMITTED_QUEUES, 'replay-chunks', 'exceptions'].map(queue => `'${queue}'`).join(', ')

/** Conditions on the rows that `ingest_log` counts, by table. It counts all rows of other tables. */
export const LOGGED_ROWS: Readonly<Record<string, string>> = {
  // Replays have further rows.
  dead_letters: `attempt = 0 AND queue IN (${LOGGED_QUEUES})`,
  // Failed spans are copied from `failures`.
  exceptions: "source != 'span_status'",
}
