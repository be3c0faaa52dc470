import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { insertNative, onEachShard } from '../../../clickhouse/client.ts'
import { onShardOfUnit, tableOfUnit } from '../../../clickhouse/cluster/shard-units.ts'
import {
  COPIED_COLUMNS,
  type JudgedTrace,
  type StoredWindow,
  selectFailures,
  selectJudgedTraces,
  selectNowMs,
} from '../../../clickhouse/queries/findings/select-judged-rows.ts'
import { ExceptionTwinsTable } from '../../../clickhouse/tables/exception-twins-table.ts'
import { HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { upkeepKeys } from '../../../shared/directory/record.ts'
import { parseJson } from '../../../shared/json/parse-json.ts'
import type { KnownRules } from '../../exceptions/known-rules.ts'
import { blocksOf } from '../../sink/row-batch.ts'
import { shardBlocks } from '../../sink/shard-blocks.ts'
import { type JudgedPart, judgePart } from './judge-part.ts'

/** Dependencies of judging failures. */
interface JudgeFailuresDeps {
  /** Redis of the directory. */
  readonly redis: Redis
  readonly clickhouse: ClickHouseClient
  /** Returns a time in Unix ms: everything that was accepted before it is stored. */
  readonly settledBeforeMs: () => Promise<number>
  readonly assertElected: () => Promise<void>
  /** Compares the rules of stored rows with the current ones. */
  readonly rules: Pick<KnownRules, 'stored'>
  /** Time after which the records of one failure are expected to be stored. */
  readonly behindMs?: number
}

/** Spans and log records of one failure leave clients that batch them within this time. */
const BEHIND_MS = 30_000
/** A queue that is late holds decisions back for this time at most. Rows that are stored later correct them. */
const MOST_BEHIND_MS = 10 * MINUTE_MS
/** Longest window. After a pause, several windows are judged one after the other. */
const MOST_WINDOW_MS = 10 * MINUTE_MS
/** A window with more traces than this is divided, unless it is short: a workspace with as many is not judged whole. */
const MOST_TRACES = 10_000
const LEAST_WINDOW_MS = 10_000
/** Time that is judged again if Redis does not have the end of the last window. */
const FIRST_WINDOWS_MS = HOUR_MS
/** Traces that are read together: about 0.5 MB of rows. */
const TRACES_OF_PART = 500
/** Failed spans in one parameter of a query. */
const KEPT_AT_ONCE = 800
const QUERY_TIMEOUT_MS = 60_000
const INSERT_TIMEOUT_MS = 60_000

/** A window that is being judged. It is divided in the same way when it is repeated, so that its inserts have the same tokens. */
interface Window extends StoredWindow {
  readonly parts: number
  readonly shards: number
}

const deadline = () => AbortSignal.timeout(QUERY_TIMEOUT_MS)

/**
 * Decides which exceptions and failed spans are one occurrence (`judgeTrace`), for the traces of what was stored since the last
 * time. A window is recorded before it is judged, and its end when all of it is stored. So a repetition has the same deduplication
 * tokens, and whatever it decides otherwise, because rows were stored meanwhile, the window of these rows decides too.
 */
export async function judgeFailures(deps: JudgeFailuresDeps): Promise<void> {
  const untilMs = await untilOf(deps)
  for (;;) {
    await deps.assertElected()
    const next = await nextWindow(deps, untilMs)
    if (next === undefined) return
    const { window, traces } = next
    for (const [part, ofPart] of Map.groupBy(traces, trace => partOf(trace, window.parts))) {
      const judged = await judgePart(deps.clickhouse, ofPart, deadline)
      await store(deps, window, `judge:${window.from}:${window.to}:${part}`, judged)
    }
    await deps.assertElected()
    await deps.redis.set(upkeepKeys.judged, JSON.stringify({ from: window.to }))
  }
}

interface NextWindow {
  readonly window: Window
  readonly traces: readonly JudgedTrace[]
}

/** Returns until when rows are judged, by the clock of ClickHouse. */
async function untilOf({ clickhouse, settledBeforeMs, behindMs = BEHIND_MS }: JudgeFailuresDeps): Promise<number> {
  const settledMs = await settledBeforeMs()
  const nowMs = await selectNowMs(clickhouse, deadline())
  return Math.max(Math.min(settledMs, nowMs) - behindMs, nowMs - MOST_BEHIND_MS)
}

/** Returns the window in progress or the next one with its traces, or undefined if there is none. */
async function nextWindow(deps: JudgeFailuresDeps, untilMs: number): Promise<NextWindow | undefined> {
  const { redis, clickhouse } = deps
  const stored = parseJson((await redis.get(upkeepKeys.judged)) ?? '{}') as Partial<Window>
  if (stored.to !== undefined) {
    const window = stored as Window
    return { window, traces: await selectJudgedTraces(clickhouse, window, deadline()) }
  }
  const from = stored.from ?? untilMs - FIRST_WINDOWS_MS
  if (untilMs <= from) return undefined
  let to = Math.min(untilMs, from + MOST_WINDOW_MS)
  let traces = await selectJudgedTraces(clickhouse, { from, to }, deadline())
  while (traces.length > MOST_TRACES && to - from > LEAST_WINDOW_MS) {
    to = from + Math.ceil((to - from) / 2)
    traces = await selectJudgedTraces(clickhouse, { from, to }, deadline())
  }
  const shards = (await clickhouse.shards?.active()) ?? 1
  const window = { from, to, parts: Math.max(1, Math.ceil(traces.length / TRACES_OF_PART)), shards }
  await deps.assertElected()
  await redis.set(upkeepKeys.judged, JSON.stringify(window))
  return { window, traces }
}

/** Returns the part of a trace. It does not depend on the other traces, of which some may be deleted meanwhile. */
function partOf({ workspaceId, traceId }: JudgedTrace, parts: number): number {
  return hash('sha256', `${workspaceId} ${traceId}`, 'buffer').readUInt32LE(0) % parts
}

/** Stores what was decided on the traces of a part. Repeated with the same token, it adds nothing. */
async function store(
  { clickhouse, assertElected, rules }: JudgeFailuresDeps,
  { shards }: Window,
  token: string,
  { key, kept, revisions, twins }: JudgedPart,
): Promise<void> {
  const timing = { timeoutMs: INSERT_TIMEOUT_MS }
  for (let begin = 0; begin < kept.length; begin += KEPT_AT_ONCE) {
    const keys = kept.slice(begin, begin + KEPT_AT_ONCE)
    await assertElected()
    await onEachShard(clickhouse, async shard => {
      const block = await selectFailures(shard, { ...key, keys }, deadline())
      if (block.length === 0) return
      const insert = { table: 'exceptions', columns: COPIED_COLUMNS, block: [block], ...timing }
      await insertNative(shard, { ...insert, deduplicationToken: `${token}:exceptions:${begin}` })
    })
  }
  // Rules may have changed since these were first stored, half a minute ago.
  if (revisions.size > 0) await rules.stored(revisions)
  if (twins.length === 0) return
  const table = new ExceptionTwinsTable()
  for (const twin of twins) table.append(twin)
  await assertElected()
  for (const { table: unit, columns, block } of shardBlocks(blocksOf([table.buffer]), shards, token)) {
    const insert = { table: tableOfUnit(unit), columns, block, ...timing }
    await onShardOfUnit(clickhouse, unit, shard =>
      insertNative(shard, { ...insert, deduplicationToken: `${token}:exception_twins` }),
    )
  }
}
