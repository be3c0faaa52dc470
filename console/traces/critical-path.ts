import type { SpanColumns } from './span-columns.ts'
import type { SpanTree } from './span-tree.ts'

/** Spans that the duration of the trace depends on. */
export interface CriticalPath {
  /** In no order. */
  readonly spans: readonly number[]
  readonly flags: Uint8Array
}

/**
 * Finds the critical path from the root that lasts longest: from the end of each span back to its start, the child that ended last
 * is on it, then the one that ended last before that child began. A child that ends after its parent counts until the end of the
 * parent. Only children of spans on the path are looked at.
 */
export function criticalPath({ starts, durations, count }: SpanColumns, tree: SpanTree): CriticalPath {
  const { order, positions, sizes } = tree
  const endOf = (span: number) => (starts[span] as number) + Math.max(0, durations[span] as number)
  const flags = new Uint8Array(count)
  const spans: number[] = []
  const root = longestRoot(tree, endOf, starts)
  if (root === undefined) return { spans, flags }
  const stack: (readonly [span: number, until: number])[] = [[root, endOf(root)]]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [span, until] = next
    flags[span] = 1
    spans.push(span)
    const first = (positions[span] as number) + 1
    const after = first + (sizes[span] as number) - 1
    const children: number[] = []
    for (let position = first; position < after; ) {
      const child = order[position] as number
      children.push(child)
      position += sizes[child] as number
    }
    children.sort((a, b) => endOf(b) - endOf(a) || (starts[b] as number) - (starts[a] as number))
    let at = until
    for (const child of children) {
      const start = starts[child] as number
      if (start >= at || Math.min(endOf(child), at) <= (starts[span] as number)) continue
      stack.push([child, Math.min(endOf(child), at)])
      at = start
    }
  }
  return { spans, flags }
}

function longestRoot(
  { order, sizes }: SpanTree,
  endOf: (span: number) => number,
  starts: Float64Array,
): number | undefined {
  let longest: number | undefined
  let length = -1
  for (let position = 0; position < order.length; ) {
    const root = order[position] as number
    const own = endOf(root) - (starts[root] as number)
    if (own > length) {
      longest = root
      length = own
    }
    position += sizes[root] as number
  }
  return longest
}
