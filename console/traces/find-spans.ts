import { indexOfId, type SpanColumns } from './span-columns.ts'
import type { SpanTree } from './span-tree.ts'

const ERROR_STATUS = 2

/** Spans that match, in the order of the rows, and a flag for each span. */
export interface Matches {
  readonly spans: Int32Array
  readonly flags: Uint8Array
}

/** Finds spans whose name or service contains a text, without regard to case, or whose id it is. */
export function findByText(columns: SpanColumns, tree: SpanTree, text: string): Matches {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return collect(tree, () => false)
  // Each distinct text is compared once, however many spans have it.
  const matching = (texts: readonly string[]) =>
    Uint8Array.from(texts, candidate => (candidate.toLowerCase().includes(wanted) ? 1 : 0))
  const names = matching(columns.names)
  const services = matching(columns.services)
  const byId = indexOfId(columns, wanted)
  const { nameIndexes, serviceIndexes } = columns
  return collect(
    tree,
    span => names[nameIndexes[span] as number] === 1 || services[serviceIndexes[span] as number] === 1 || span === byId,
  )
}

/** Finds spans with the status ERROR. */
export function findErrors({ statuses }: SpanColumns, tree: SpanTree): Matches {
  return collect(tree, span => statuses[span] === ERROR_STATUS)
}

function collect({ order }: SpanTree, isMatch: (span: number) => boolean): Matches {
  const flags = new Uint8Array(order.length)
  const spans = new Int32Array(order.length)
  let count = 0
  for (let i = 0; i < order.length; i++) {
    const span = order[i] as number
    if (!isMatch(span)) continue
    flags[span] = 1
    spans[count++] = span
  }
  return { spans: spans.slice(0, count), flags }
}

/** Returns the match after or before a span in the order of the rows, and begins again at the other end. */
export function nextMatch({ positions }: SpanTree, { spans }: Matches, from: number, step: 1 | -1): number | undefined {
  if (spans.length === 0) return undefined
  const position = positions[from] ?? -1
  let low = 0
  let high = spans.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((positions[spans[middle] as number] as number) < position + (step === 1 ? 1 : 0)) low = middle + 1
    else high = middle
  }
  const index = step === 1 ? low : low - 1
  return spans[(index + spans.length) % spans.length]
}
