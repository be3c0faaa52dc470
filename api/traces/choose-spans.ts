/** The shape of a trace, with one entry per distinct span in the order of the response: by start, then by span id. */
export interface TraceShape {
  /** Index of the parent of each span, or ROOT, or DANGLING. */
  readonly parents: Int32Array
  /** 1 for each span whose status is an error. */
  readonly isError: Uint8Array
  /** Bytes of text that each span adds to a response. */
  readonly sizes: Uint32Array
}

/** The parent of a span that has none. */
export const ROOT = -1
/** The parent of a span whose parent is not retained in the trace. */
export const DANGLING = -2

/** How many ancestors of an error are chosen first: about the depth of a trace through a hundred services. */
const NEAR_SPANS = 200

/**
 * Chooses the spans to show when not all fit, and returns their indices in ascending order. Roots come first, then error
 * spans with their ancestors, then the other spans from the top of the tree downwards, so that the shown part is connected.
 * Spans that belong to a cycle of parents belong to no tree, and come last. The time is linear in the number of spans.
 *
 * The near ancestors of every error come before the far ancestors of any, because otherwise a single runaway recursion could
 * take all the room. If there are errors, roots take at most half of the room: a client that never changes its trace id
 * makes one root per request, and its trace would show nothing else.
 */
export function chooseSpans(shape: TraceShape, limit: number, budgetBytes: number): number[] {
  const { parents, isError } = shape
  const choice = new Choice(shape.sizes, limit, budgetBytes)
  chooseRoots(choice, parents, isError.includes(1) ? Math.ceil(limit / 2) : limit)
  for (const reach of [NEAR_SPANS, parents.length]) chooseErrors(choice, shape, reach)
  if (!choice.isFull) for (const span of byDepth(parents)) choice.take(span)
  return choice.indices()
}

/** The spans chosen so far, and the room that is left. */
class Choice {
  readonly #sizes: Uint32Array
  readonly #isChosen: Uint8Array
  #spansLeft: number
  #bytesLeft: number

  constructor(sizes: Uint32Array, limit: number, budgetBytes: number) {
    this.#sizes = sizes
    this.#isChosen = new Uint8Array(sizes.length)
    this.#spansLeft = limit
    this.#bytesLeft = budgetBytes
  }

  get isFull(): boolean {
    return this.#spansLeft === 0
  }

  /** Takes a span, unless it is chosen already or does not fit. */
  take(span: number): void {
    const size = this.#sizes[span] ?? 0
    if (this.#isChosen[span] === 1 || this.#spansLeft === 0 || size > this.#bytesLeft) return
    this.#isChosen[span] = 1
    this.#spansLeft--
    this.#bytesLeft -= size
  }

  indices(): number[] {
    const indices: number[] = []
    for (let span = 0; span < this.#isChosen.length; span++) if (this.#isChosen[span] === 1) indices.push(span)
    return indices
  }
}

function chooseRoots(choice: Choice, parents: Int32Array, limit: number): void {
  let roots = 0
  for (let span = 0; span < parents.length && roots < limit && !choice.isFull; span++) {
    if (parents[span] !== ROOT) continue
    choice.take(span)
    roots++
  }
}

/** Chooses each error span with its ancestors, up to `reach` spans of each path. */
function chooseErrors(choice: Choice, { parents, isError }: TraceShape, reach: number): void {
  const isVisited = new Uint8Array(parents.length)
  for (let span = 0; span < parents.length && !choice.isFull; span++) {
    if (isError[span] !== 1) continue
    // Each path ends at a root, at a missing parent, at the end of a cycle, or where an earlier path was.
    for (let at = span, steps = 0; at >= 0 && isVisited[at] === 0 && steps < reach; at = parents[at] ?? ROOT, steps++) {
      isVisited[at] = 1
      choice.take(at)
    }
  }
}

/** Sorts all spans by their depth in their tree, keeping the given order of equals. Spans on cycles come last. */
function byDepth(parents: Int32Array): Uint32Array {
  const depths = depthsOf(parents)
  // A counting sort: `starts[depth]` is where the next span of that depth belongs.
  const starts = new Uint32Array(parents.length + 2)
  for (const depth of depths) starts[depth + 1] = (starts[depth + 1] ?? 0) + 1
  for (let depth = 1; depth < starts.length; depth++) starts[depth] = (starts[depth] ?? 0) + (starts[depth - 1] ?? 0)
  const order = new Uint32Array(parents.length)
  for (let span = 0; span < parents.length; span++) {
    const depth = depths[span] ?? 0
    const index = starts[depth] ?? 0
    order[index] = span
    starts[depth] = index + 1
  }
  return order
}

/** Returns the depth of each span: 0 for roots and dangling spans, and the number of spans for those that depend on a cycle. */
function depthsOf(parents: Int32Array): Int32Array {
  const unknown = -1
  const onPath = -2
  const cyclic = parents.length
  const depths = new Int32Array(parents.length).fill(unknown)
  const path: number[] = []
  for (let span = 0; span < parents.length; span++) {
    let at = span
    while (at >= 0 && depths[at] === unknown) {
      depths[at] = onPath
      path.push(at)
      at = parents[at] ?? ROOT
    }
    // The walk ended above a root, at a span of known depth, or on its own path.
    let depth = at < 0 ? -1 : depths[at] === onPath ? cyclic : (depths[at] ?? 0)
    for (let below = path.pop(); below !== undefined; below = path.pop()) {
      depth = Math.min(depth + 1, cyclic)
      depths[below] = depth
    }
  }
  return depths
}
