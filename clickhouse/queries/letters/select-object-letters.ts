import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { LETTER_COLUMNS, type Letter, type LetterRow, letterOf } from './letter.ts'

/** Names objects with letters that arrived within these times. */
export interface LetterObjects {
  readonly workspaceId: string
  readonly objectKeys: readonly string[]
  readonly fromMs: number
  readonly toMs: number
}

const DAY_MS = 24 * 60 * 60 * 1_000

/** Returns the letters of which these objects have the bytes, one row for each letter. An object has letters of one day. */
export async function selectObjectLetters(
  client: ClickHouseClient,
  { workspaceId, objectKeys, fromMs, toMs }: LetterObjects,
  signal: AbortSignal,
): Promise<Letter[]> {
  const rows = await selectRows<LetterRow>(client, {
    query: `
      SELECT ${LETTER_COLUMNS} FROM dead_letters
      WHERE workspace_id = {workspaceId: String}
        AND received_at >= fromUnixTimestamp64Milli({fromMs: Int64})
        AND received_at < fromUnixTimestamp64Milli({toMs: Int64})
        AND object_key IN {objectKeys: Array(String)}
      ORDER BY object_key, object_offset
      LIMIT 1 BY object_key, object_offset`,
    params: {
      workspaceId,
      objectKeys,
      fromMs: Math.floor(fromMs / DAY_MS) * DAY_MS,
      toMs: (Math.floor(toMs / DAY_MS) + 1) * DAY_MS,
    },
    signal,
  })
  return rows.map(letterOf)
}
