import { ADMITTED_QUEUES } from '../schemas/queues/names.ts'

const LOGGED_QUEUES = [...ADMITTED_QUEUES, 'replay-chunks', 'exceptions'].map(queue => `'${queue}'`).join(', ')

/** Condition on `dead_letters` that the letters of requests meet which `ingest_log` counts. Replays have further rows. */
export const LOGGED_LETTERS = `attempt = 0 AND queue IN (${LOGGED_QUEUES})`
