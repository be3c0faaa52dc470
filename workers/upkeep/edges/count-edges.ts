import type { Redis } from 'ioredis'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { insertNative, onEachShard } from '../../../clickhouse/client.ts'
import { EDGE_COLUMNS, selectCountedEdges } from '../../../clickhouse/queries/services/select-counted-edges.ts'
import { HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { upkeepKeys } from '../../../shared/directory/record.ts'

/** Dependencies of counting edges. */
interface CountEdgesDeps {
  /** Redis of the directory. */
  readonly redis: Redis
  readonly clickhouse: ClickHouseClient
  /** Returns a time in Unix ms: all spans that were accepted before it are stored. */
  readonly settledBeforeMs: () => Promise<number>
  readonly assertElected: () => Promise<void>
}

/** The callers of what arrived in a minute arrive within this time before it and after it. */
const CALLERS_BEFORE_MS = MINUTE_MS
const CALLERS_AFTER_MS = MINUTE_MS
/** Time that is counted again if Redis does not know how far the counts are. A minute that was counted adds nothing. */
const FIRST_MS = HOUR_MS
const TIMEOUT_MS = 60_000

/**
 * Counts which service calls which, for each whole minute of arrival that ended a minute before everything accepted is stored. A
 * minute that is counted again, after a crash or by two processes, has the same deduplication token and adds nothing.
 */
export async function countEdges(deps: CountEdgesDeps): Promise<void> {
  const { redis, clickhouse, assertElected } = deps
  const untilMs = (await deps.settledBeforeMs()) - CALLERS_AFTER_MS
  const known = Number((await redis.get(upkeepKeys.edgesBefore)) ?? untilMs - FIRST_MS)
  for (let fromMs = Math.floor(known / MINUTE_MS) * MINUTE_MS; fromMs + MINUTE_MS <= untilMs; fromMs += MINUTE_MS) {
    await assertElected()
    await countMinute(clickhouse, fromMs)
    await redis.set(upkeepKeys.edgesBefore, fromMs + MINUTE_MS)
  }
}

async function countMinute(clickhouse: ClickHouseClient, fromMs: number): Promise<void> {
  const toMs = fromMs + MINUTE_MS
  const callers = { callersFromMs: fromMs - CALLERS_BEFORE_MS, callersToMs: toMs + CALLERS_AFTER_MS }
  // The spans of a trace are on one shard.
  await onEachShard(clickhouse, async shard => {
    const block = await selectCountedEdges(shard, { fromMs, toMs, ...callers }, AbortSignal.timeout(TIMEOUT_MS))
    if (block.length === 0) return
    const insert = { table: 'service_edges', columns: EDGE_COLUMNS, block: [block], timeoutMs: TIMEOUT_MS }
    await insertNative(shard, { ...insert, deduplicationToken: `edges:${fromMs}` })
  })
}
