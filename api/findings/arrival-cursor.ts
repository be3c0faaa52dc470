import { z } from 'zod'
import type { ArrivalKey } from '../../clickhouse/queries/findings/select-findings-page.ts'
import type { FindingsSnapshot } from '../../clickhouse/queries/findings/select-findings-snapshot.ts'
import { DAY_MS, HOUR_MS } from '../../schemas/units.ts'
import { CLICKHOUSE_SHARDS_MAX } from '../../shared/runtime/config.ts'
import { decodeCursor, digestOf, encodeCursor, INVALID_CURSOR, type ListIdentity, OTHER_LIST } from '../http/cursor.ts'
import { invalid, type Outcome } from '../http/outcome.ts'

/** A cursor of a list that is ordered by arrival. */
interface ArrivalCursor {
  /** The last entry of the page. */
  readonly last: ArrivalKey
  /** The snapshot that all pages show, for lists that show the state of their first page. */
  readonly snapshot?: FindingsSnapshot | undefined
}

/** A list shows the state of its first page for as long. Occurrences of the days since then are looked through for each page. */
const SNAPSHOT_MAX_AGE_MS = DAY_MS

/** How far the clock of ClickHouse, which dates snapshots, may be ahead of that of this process. */
const CLOCK_DIFFERENCE_MS = HOUR_MS

const unixMs = z.string().regex(/^\d{1,15}$/)
/** A block, or one for each shard. */
const blockSchema = z.union([z.number().int().min(0), z.array(z.number().int().min(-1)).max(CLICKHOUSE_SHARDS_MAX)])
const snapshotOf = (asOfMs: number, block: z.infer<typeof blockSchema>): FindingsSnapshot =>
  typeof block === 'number' ? { asOfMs, block } : { asOfMs, block: 0, blocks: block }

const cursorSchema = z
  .tuple([
    z.string(),
    unixMs,
    unixMs,
    z.string().regex(/^(fnd_[a-z2-7]{26}|[0-9a-f]{32})$/),
    z.tuple([z.number().int().min(0).max(Number.MAX_SAFE_INTEGER), blockSchema]).nullable(),
  ])
  .transform(([list, storedMs, receivedMs, id, snapshot]) => ({
    list,
    last: { id, storedMs, receivedMs },
    snapshot: snapshot === null ? undefined : snapshotOf(...snapshot),
  }))

/** Encodes a cursor of the list. */
export function encodeArrivalCursor(list: ListIdentity, { last, snapshot }: ArrivalCursor): string {
  const { storedMs, receivedMs, id } = last
  const at = snapshot ? [snapshot.asOfMs, snapshot.blocks ?? snapshot.block] : null
  return encodeCursor([digestOf(list), storedMs, receivedMs, id, at])
}

/** Decodes a cursor, and refuses one that another list has returned or whose snapshot is too old. */
export function decodeArrivalCursor(
  list: ListIdentity,
  text: string | undefined,
  nowMs: number,
): Outcome<ArrivalCursor | undefined> {
  const cursor = decodeCursor(cursorSchema, text)
  if (!cursor.ok || cursor.value === undefined) return cursor
  const { snapshot } = cursor.value
  if (cursor.value.list !== digestOf(list)) return OTHER_LIST
  if (snapshot && snapshot.asOfMs > nowMs + CLOCK_DIFFERENCE_MS) return INVALID_CURSOR
  if (snapshot && nowMs - snapshot.asOfMs > SNAPSHOT_MAX_AGE_MS) {
    return invalid('cursor is older than a day: start again without it')
  }
  return cursor
}
