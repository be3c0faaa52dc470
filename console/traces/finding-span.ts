import { idOf, type SpanColumns } from './span-columns.ts'

const BATCH = 200
/** Spans that are read for it. Nearly every exception is in a span with an error, and those are read first. */
const SPANS_MAX = 2_000

/** Returns ids of spans that may have the finding: those with an error, then others, in the order of the trace. */
export function candidatesOf(columns: SpanColumns, errors: Int32Array): readonly string[] {
  const first = [...errors.subarray(0, SPANS_MAX)].sort((a, b) => a - b)
  const known = new Set(first)
  for (let span = 0; span < columns.count && known.size < SPANS_MAX; span++) known.add(span)
  return Array.from(known, span => idOf(columns, span))
}

type Read = (ids: readonly string[]) => Promise<{
  readonly spans: readonly { readonly spanId: string; readonly findingIds: readonly string[] }[]
  readonly rest: readonly string[]
}>

/** Returns the first of some spans in which a finding occurred. Spans for which a response has no room are read with the next. */
export async function spanOfFinding(finding: string, ids: readonly string[], read: Read): Promise<string | undefined> {
  let waiting = ids
  while (waiting.length > 0) {
    const { spans, rest } = await read(waiting.slice(0, BATCH))
    const found = spans.find(({ findingIds }) => findingIds.includes(finding))
    if (found) return found.spanId
    waiting = [...rest, ...waiting.slice(BATCH)]
  }
  return undefined
}
