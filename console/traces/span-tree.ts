/** The tree of a trace as arrays with an entry for each span. */
export interface SpanTree {
  /** The spans in the order of the rows: each before its children, which follow it. */
  readonly order: Int32Array
  /** Position of each span in `order`. */
  readonly positions: Int32Array
  /** 0 for roots. */
  readonly depths: Int32Array
  /** Number of spans below and with each span. */
  readonly sizes: Int32Array
  /** Parent in the tree; -1 for roots, spans whose parent is not retained, and the span at which a cycle is cut. */
  readonly parents: Int32Array
  /** Position among the children of its parent, from 1, and how many these are. */
  readonly siblingPositions: Int32Array
  readonly siblingCounts: Int32Array
  /** Spans at which a cycle is cut: their parent is one of their own descendants. */
  readonly cuts: ReadonlySet<number>
}

/**
 * Arranges spans by the indexes of their parents, in time that grows with their number. Siblings keep their order. A cycle, which
 * no root leads to, is cut at its first span.
 */
export function arrange(parentIndexes: Int32Array): SpanTree {
  const count = parentIndexes.length
  const parents = Int32Array.from(parentIndexes, parent => (parent >= 0 && parent < count ? parent : -1))
  const { firstChildren, nextSiblings, childCounts, firstRoot } = linkSiblings(parents)
  const order = new Int32Array(count)
  const positions = new Int32Array(count).fill(-1)
  const depths = new Int32Array(count)
  let placed = 0
  /** Places a span and all below it, without recursion: a trace may be as deep as it has spans. */
  const place = (top: number): void => {
    let span = top
    for (;;) {
      positions[span] = placed
      order[placed++] = span
      let next = firstChildren[span] as number
      while (next >= 0 && positions[next] !== -1) next = nextSiblings[next] as number
      while (next < 0 && span !== top) {
        next = nextSiblings[span] as number
        while (next >= 0 && positions[next] !== -1) next = nextSiblings[next] as number
        if (next < 0) span = parents[span] as number
      }
      if (next < 0) return
      const parent = parents[next] as number
      depths[next] = (depths[parent] as number) + 1
      span = next
    }
  }
  for (let root = firstRoot; root >= 0; root = nextSiblings[root] as number) place(root)

  const cuts = new Set<number>()
  for (let span = 0; placed < count && span < count; span++) {
    if (positions[span] !== -1) continue
    const cut = firstOfCycle(parents, span)
    const parent = parents[cut] as number
    childCounts[parent] = (childCounts[parent] as number) - 1
    cuts.add(cut)
    place(cut)
  }
  for (const cut of cuts) parents[cut] = -1
  return { order, positions, depths, parents, cuts, ...countFamilies(order, parents, childCounts) }
}

/** Links the children of each span, and the roots, in their order. */
function linkSiblings(parents: Int32Array) {
  const firstChildren = new Int32Array(parents.length).fill(-1)
  const nextSiblings = new Int32Array(parents.length).fill(-1)
  const childCounts = new Int32Array(parents.length)
  let firstRoot = -1
  for (let span = parents.length - 1; span >= 0; span--) {
    const parent = parents[span] as number
    if (parent < 0) {
      nextSiblings[span] = firstRoot
      firstRoot = span
    } else {
      nextSiblings[span] = firstChildren[parent] as number
      firstChildren[parent] = span
      childCounts[parent] = (childCounts[parent] as number) + 1
    }
  }
  return { firstChildren, nextSiblings, childCounts, firstRoot }
}

/** Counts the spans below each span, and its siblings. */
function countFamilies(order: Int32Array, parents: Int32Array, childCounts: Int32Array) {
  const count = order.length
  const sizes = new Int32Array(count).fill(1)
  for (let i = count - 1; i >= 0; i--) {
    const span = order[i] as number
    const parent = parents[span] as number
    if (parent >= 0) sizes[parent] = (sizes[parent] as number) + (sizes[span] as number)
  }
  const siblingPositions = new Int32Array(count)
  const siblingCounts = new Int32Array(count)
  const seen = new Int32Array(count)
  const rootCount = parents.reduce((sum, parent) => (parent < 0 ? sum + 1 : sum), 0)
  let roots = 0
  for (let i = 0; i < count; i++) {
    const span = order[i] as number
    const parent = parents[span] as number
    if (parent >= 0) seen[parent] = (seen[parent] as number) + 1
    siblingPositions[span] = parent < 0 ? ++roots : (seen[parent] as number)
    siblingCounts[span] = parent < 0 ? rootCount : (childCounts[parent] as number)
  }
  return { sizes, siblingPositions, siblingCounts }
}

/** Returns the lowest index of the cycle that a span is in or hangs from. */
function firstOfCycle(parents: Int32Array, span: number): number {
  const path = new Set<number>()
  let at = span
  while (!path.has(at)) {
    path.add(at)
    at = parents[at] as number
  }
  let first = at
  for (let member = parents[at] as number; member !== at; member = parents[member] as number) {
    first = Math.min(first, member)
  }
  return first
}

/** Returns the spans whose rows are visible, in one pass that skips all below a collapsed span. */
export function visibleRows({ order, sizes }: SpanTree, collapsed: Uint8Array): Int32Array {
  const rows = new Int32Array(order.length)
  let count = 0
  for (let i = 0; i < order.length; ) {
    const span = order[i] as number
    rows[count++] = span
    i += collapsed[span] === 1 ? (sizes[span] as number) : 1
  }
  return rows.subarray(0, count)
}

/** Collapses every span that has children, or none. */
export function collapseAll({ sizes }: SpanTree, collapsed: Uint8Array, on: boolean): void {
  if (!on) collapsed.fill(0)
  else for (let span = 0; span < sizes.length; span++) collapsed[span] = (sizes[span] as number) > 1 ? 1 : 0
}

/** Expands all spans above a span. Reports whether one was collapsed. */
export function reveal({ parents }: SpanTree, collapsed: Uint8Array, span: number): boolean {
  let changed = false
  for (let at = parents[span] as number; at >= 0; at = parents[at] as number) {
    if (collapsed[at] === 1) changed = true
    collapsed[at] = 0
  }
  return changed
}
