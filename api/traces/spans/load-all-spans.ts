import type { SpanDetailsRow } from '../../../clickhouse/queries/traces/select-span-details.ts'
import type { TraceKey } from '../../../clickhouse/queries/traces/select-trace.ts'
import { type ColumnsDeps, useColumns } from '../columns/use-columns.ts'
import { loadSpans } from './load-spans.ts'

/** All spans of a trace with everything that was received, in the order of their starts. */
export interface WholeTrace {
  readonly traceId: string
  readonly rows: readonly SpanDetailsRow[]
  /** Whether further spans are stored. */
  readonly truncated: boolean
}

/** Limits of a whole trace. */
export interface WholeTraceLimits {
  readonly spans: number
  /** Characters of the texts of its spans. */
  readonly characters: number
}

/** Limits of a trace that is read alone. */
export const WHOLE_TRACE: WholeTraceLimits = { spans: 5_000, characters: 16 * 1024 * 1024 }

const BATCH_SPANS = 500
/** A trace with more spans or more characters waits for a slot for large ones. */
const SMALL: WholeTraceLimits = { spans: 1_000, characters: 2 * 1024 * 1024 }

/**
 * Loads a trace with the details of its spans and returns what `use` makes of it, or undefined if nothing of it is retained.
 * `use` of a large trace runs while it has its slot, and must not keep the rows.
 */
export async function useAllSpans<T>(
  deps: ColumnsDeps,
  key: TraceKey,
  limits: WholeTraceLimits,
  use: (whole: WholeTrace) => T,
  signal: AbortSignal,
): Promise<T | undefined> {
  const found = await useColumns(deps, key, signal, async ({ skeleton, arranged: { numbers }, truncated }) => ({
    spanIds: Array.from(numbers.subarray(0, limits.spans), number => skeleton.spanId(number)),
    truncated: truncated || numbers.length > limits.spans,
  }))
  if (found === undefined) return undefined
  const useWithin = async (characters: number) => {
    const whole = await loadDetails(deps, key, found, characters, signal)
    return whole.rows.length === 0 && !whole.truncated ? undefined : { whole, value: () => use(whole) }
  }
  if (found.spanIds.length <= SMALL.spans) {
    const small = await useWithin(Math.min(limits.characters, SMALL.characters))
    const isWhole = small === undefined || small.whole.truncated === found.truncated
    if (isWhole || limits.characters <= SMALL.characters) return small?.value()
  }
  return deps.largeTraces.run(key.workspaceId, async () => (await useWithin(limits.characters))?.value(), signal)
}

async function loadDetails(
  { clickhouse }: ColumnsDeps,
  key: TraceKey,
  { spanIds, truncated }: { readonly spanIds: readonly string[]; readonly truncated: boolean },
  characters: number,
  signal: AbortSignal,
): Promise<WholeTrace> {
  const rows: SpanDetailsRow[] = []
  let left = characters
  let rest: readonly string[] = spanIds
  let isCut = truncated
  while (rest.length > 0) {
    const { spans, ...others } = await loadSpans(clickhouse, key, rest.slice(0, BATCH_SPANS), signal)
    for (const { row } of spans) {
      left -= textCharacters(row)
      if (left < 0) return { traceId: key.traceId, rows, truncated: true }
      rows.push(row)
    }
    isCut ||= others.tooLarge.length > 0
    rest = [...others.rest, ...rest.slice(BATCH_SPANS)]
  }
  return { traceId: key.traceId, rows, truncated: isCut }
}

function textCharacters({ attributeColumns, eventColumns, linkColumns, resourceJson, name }: SpanDetailsRow): number {
  const of = ([keys, values]: SpanDetailsRow['attributeColumns']) =>
    keys.reduce((sum, key, i) => sum + key.length + (values[i]?.length ?? 0), 0)
  const events = eventColumns.reduce((sum, [, text, attributes]) => sum + text.length + of(attributes), 0)
  const links = linkColumns.reduce((sum, [, , , , attributes]) => sum + of(attributes), 0)
  return of(attributeColumns) + events + links + resourceJson.length + name.length
}
