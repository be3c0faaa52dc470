import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import {
  HAS_KEY,
  keyParams,
  LETTER_COLUMNS,
  type Letter,
  type LetterFilter,
  type LetterKey,
  type LetterRow,
  letterOf,
} from './letter.ts'

/** A page of the letters of a workspace, by arrival. */
interface LettersPage {
  readonly workspaceId: string
  readonly filter: LetterFilter
  readonly order: 'newest' | 'oldest'
  /** The last letter of the page before. */
  readonly after?: LetterKey | undefined
  readonly limit: number
}

/** Returns a page of letters, each as of its last attempt. */
export async function selectLetters(
  client: ClickHouseClient,
  page: LettersPage,
  signal: AbortSignal,
): Promise<Letter[]> {
  const { workspaceId, filter, order, after, limit } = page
  const { outcome, reason } = filter
  const direction = order === 'newest' ? 'DESC' : 'ASC'
  const follows = order === 'newest' ? '<' : '>'
  const conditions = [
    filter.fromMs !== undefined && 'received_at >= fromUnixTimestamp64Milli({fromMs: Int64})',
    filter.toMs !== undefined && 'received_at < fromUnixTimestamp64Milli({toMs: Int64})',
    filter.queue !== undefined && 'queue = {queue: String}',
    filter.surfaceId !== undefined && 'surface_id = {surfaceId: String}',
    filter.sessionId !== undefined && 'session_id = {sessionId: String}',
    // The first condition follows from the second, and is one that the primary key serves.
    after && `received_at ${follows}= fromUnixTimestamp64Milli({afterMs: Int64})`,
    after &&
      `(received_at, job_id, job_index) ${follows}
       (fromUnixTimestamp64Milli({afterMs: Int64}), {afterJob: String}, {afterIndex: UInt32})`,
  ]
  const lastConditions = [
    outcome !== undefined && 'outcome = {outcome: String}',
    reason !== undefined && 'reason = {reason: String}',
  ]
  const rows = await selectRows<LetterRow>(client, {
    query: `
      SELECT ${LETTER_COLUMNS}
      FROM (
        SELECT * FROM dead_letters
        WHERE workspace_id = {workspaceId: String} ${andAll(conditions)}
        ORDER BY received_at ${direction}, job_id ${direction}, job_index ${direction}, attempt DESC
        LIMIT 1 BY received_at, job_id, job_index
      )
      WHERE true ${andAll(lastConditions)}
      ORDER BY received_at ${direction}, job_id ${direction}, job_index ${direction}
      LIMIT {limit: UInt32}`,
    params: {
      workspaceId,
      limit,
      ...(after && { afterMs: after.receivedAtMs, afterJob: after.jobId, afterIndex: after.index }),
      ...Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)),
    },
    signal,
  })
  return rows.map(letterOf)
}

/** Returns the letters with these keys, each as of its last attempt, in the order of their arrival. */
export async function selectLettersByKey(
  client: ClickHouseClient,
  workspaceId: string,
  keys: readonly LetterKey[],
  signal: AbortSignal,
): Promise<Letter[]> {
  if (keys.length === 0) return []
  const attempts = await selectAttempts(client, workspaceId, keys, signal)
  return attempts.filter((letter, i) => !isSame(letter, attempts[i + 1]))
}

/** Returns every attempt of the letters with these keys, by arrival, and the attempts of a letter in their order. */
export async function selectAttempts(
  client: ClickHouseClient,
  workspaceId: string,
  keys: readonly LetterKey[],
  signal: AbortSignal,
): Promise<Letter[]> {
  const rows = await selectRows<LetterRow>(client, {
    query: `
      SELECT ${LETTER_COLUMNS} FROM dead_letters WHERE ${HAS_KEY}
      ORDER BY received_at, job_id, job_index, attempt`,
    params: keyParams(workspaceId, keys),
    signal,
  })
  return rows.map(letterOf)
}

function isSame(letter: LetterKey, other: LetterKey | undefined): boolean {
  return letter.jobId === other?.jobId && letter.index === other.index && letter.receivedAtMs === other.receivedAtMs
}

function andAll(conditions: readonly (string | false | undefined)[]): string {
  return conditions.flatMap(condition => (condition ? [`AND ${condition}`] : [])).join('\n        ')
}
