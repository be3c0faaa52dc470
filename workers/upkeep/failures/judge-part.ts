import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import {
  type JudgedRow,
  type JudgedTrace,
  selectJudgedFindings,
  selectJudgedRows,
  selectTraceParents,
} from '../../../clickhouse/queries/findings/select-judged-rows.ts'
import type { TraceKey } from '../../../clickhouse/read-connection.ts'
import type { ExceptionTwinsRow } from '../../../clickhouse/tables/exception-twins-table.ts'
import { ExceptionSource } from '../../../clickhouse/tables/exceptions-table.ts'
import { revisionOf } from '../../../clickhouse/tables/finding-moves-table.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { judgeTrace } from './judge-trace.ts'

/** Rows of a trace that were received further apart than this are not compared. It bounds what is read of `exceptions`. */
const COMPARED_MS = HOUR_MS
const ID_LENGTH = 16
const NO_PARENTS: ReadonlyMap<string, string> = new Map()

/** The decisions on some traces. */
export interface JudgedPart {
  /** The traces, and when their rows were received. */
  readonly key: Parameters<typeof selectJudgedRows>[1]
  /** Keys of the failed spans that count from now on. */
  readonly kept: readonly string[]
  /** The earliest rules by which these were grouped when they were stored, as revisions by workspace. */
  readonly revisions: ReadonlyMap<string, number>
  readonly twins: readonly ExceptionTwinsRow[]
}

/** Reads what is known of some traces, and decides which of their rows count. Each read has a deadline. */
export async function judgePart(
  client: ClickHouseClient,
  traces: readonly JudgedTrace[],
  deadline: () => AbortSignal,
): Promise<JudgedPart> {
  const key = {
    workspaceIds: [...new Set(traces.map(({ workspaceId }) => workspaceId))],
    traceIds: [...new Set(traces.map(({ traceId }) => traceId))],
    fromMs: traces.reduce((first, { firstMs }) => Math.min(first, firstMs), Number.MAX_SAFE_INTEGER) - COMPARED_MS,
    toMs: traces.reduce((last, { lastMs }) => Math.max(last, lastMs), 0) + COMPARED_MS,
  }
  const isOfPart = new Set(traces.map(nameOf))
  const rows = await selectJudgedRows(client, key, deadline())
  const byTrace = Map.groupBy(
    rows.filter(row => isOfPart.has(nameOf(row))),
    nameOf,
  )
  const findings = await findingsOf(client, [...byTrace.values()], deadline)
  const related = new Map([...byTrace].map(([name, ofTrace]) => [name, relate(ofTrace)]))
  const apart = [...byTrace.values()].filter(ofTrace => !related.get(nameOf(ofTrace[0] as JudgedRow))?.isWhole)
  const parents = await parentsOf(client, key, apart, deadline)
  const kept: string[] = []
  const revisions = new Map<string, number>()
  const twins: ExceptionTwinsRow[] = []
  for (const [name, ofTrace] of byTrace) {
    const verdict = judgeTrace(
      ofTrace.map(row => ({
        ...row,
        findingId: findings.get(row.variantId) ?? row.findingId,
        isFailure: isFailure(row),
      })),
      parents.get(name) ?? related.get(name)?.parents ?? NO_PARENTS,
    )
    for (const { key: keptKey, workspaceId, rank } of verdict.kept) {
      kept.push(keptKey)
      const earliest = revisions.get(workspaceId) ?? Number.POSITIVE_INFINITY
      revisions.set(workspaceId, Math.min(earliest, revisionOf(BigInt(rank))))
    }
    for (const { row, change } of verdict.changes) {
      twins.push({ ...row, occurredUnixNano: BigInt(row.occurredUnixNano), change })
    }
  }
  return { key, kept, revisions, twins }
}

const nameOf = ({ workspaceId, traceId }: TraceKey) => `${workspaceId} ${traceId}`
const isFailure = ({ source }: JudgedRow) => source === ExceptionSource.spanStatus
const NO_SPAN = '0'.repeat(ID_LENGTH)

/** The parents that the rows of a trace name, and whether all of its rows are below one span that has a row. */
interface Related {
  readonly parents: ReadonlyMap<string, string>
  readonly isWhole: boolean
}

/** An error is mostly reported by each span that it passes, so that the other spans of the trace need not be read. */
function relate(rows: readonly JudgedRow[]): Related {
  const parents = new Map<string, string>()
  const spanIds = new Set<string>()
  for (const { spanId, parentSpanId } of rows) {
    if (spanId !== NO_SPAN) spanIds.add(spanId)
    if (parentSpanId !== NO_SPAN && parentSpanId > (parents.get(spanId) ?? '')) parents.set(spanId, parentSpanId)
  }
  const tops = [...spanIds].filter(spanId => !spanIds.has(parents.get(spanId) ?? ''))
  return { parents, isWhole: spanIds.size === 0 || tops.length === 1 }
}

/** Reads the findings of exceptions where a trace has several variants. Only these may be of one finding or not. */
async function findingsOf(
  client: ClickHouseClient,
  traces: readonly (readonly JudgedRow[])[],
  deadline: () => AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const [workspaceIds, variantIds] = [new Set<string>(), new Set<string>()]
  for (const rows of traces) {
    const exceptions = rows.filter(row => !isFailure(row))
    if (exceptions.every(({ variantId }) => variantId === exceptions[0]?.variantId)) continue
    for (const { workspaceId, variantId } of exceptions) {
      workspaceIds.add(workspaceId)
      variantIds.add(variantId)
    }
  }
  if (variantIds.size === 0) return NO_PARENTS
  return selectJudgedFindings(client, [...workspaceIds], [...variantIds], deadline())
}

/** Reads the parents of the spans of traces, by the name of the trace. The greatest of several parents of a span counts. */
async function parentsOf(
  client: ClickHouseClient,
  { fromMs, toMs }: Pick<JudgedPart['key'], 'fromMs' | 'toMs'>,
  traces: readonly (readonly JudgedRow[])[],
  deadline: () => AbortSignal,
): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const keys = traces.flatMap(rows => rows.slice(0, 1))
  if (keys.length === 0) return new Map()
  const workspaceIds = [...new Set(keys.map(({ workspaceId }) => workspaceId))]
  const traceIds = [...new Set(keys.map(({ traceId }) => traceId))]
  const found = await selectTraceParents(client, { workspaceIds, traceIds, fromMs, toMs }, deadline())
  return new Map(found.map(trace => [nameOf(trace), readParents(trace.parents)]))
}

function readParents(text: string): ReadonlyMap<string, string> {
  const parents = new Map<string, string>()
  for (let at = 0; at < text.length; at += 2 * ID_LENGTH) {
    const spanId = text.slice(at, at + ID_LENGTH)
    const parent = text.slice(at + ID_LENGTH, at + 2 * ID_LENGTH)
    if (parent > (parents.get(spanId) ?? '')) parents.set(spanId, parent)
  }
  return parents
}
