/** The shape of a trace, one entry per distinct span, in the order of the answer (start, then span id). */
export interface TraceShape {
  /** Index of the parent, or ROOT, or DANGLING. */
  readonly parents: Int32Array
  readonly isError: Uint8Array
  /** Bytes of text that the span costs in an answer. */
  readonly sizes: Uint32Array
}

export const ROOT = -1
/** The parent is not retained in the trace. */
export const DANGLING = -2

/** An error and its ancestors, as many as a trace of a hundred services is deep. */
const NEAR_SPANS = 200

/**
 * Which spans to keep when not all fit: roots, then error spans with their ancestors, then the others from the top of
 * the tree downwards, so that what is kept hangs together. Returns indices in ascending order. Linear in the number of
 * spans; parents that form a cycle belong to no tree and come last. The near ancestors of every error come before the far
 * ones of any: one call that runs away would show nothing but itself.
 *
 * Where errors need the room, roots take at most half of it: a trace id that a client never changes has a root per
 * request, and would show nothing else.
 */
export function chooseSpans(shape: TraceShape, limit: number, budgetBytes: number): number[] {
  const { parents, isError, sizes } = shape
  const count = parents.length
  const chosen = new Uint8Array(count)
  let places = limit
  let bytes = budgetBytes

  const fits = (span: number) => places > 0 && sizeOf(span) <= bytes
  const sizeOf = (span: number) => sizes[span] ?? 0
  function take(span: number): void {
    if (chosen[span] === 1 || !fits(span)) return
    chosen[span] = 1
    places--
    bytes -= sizeOf(span)
  }

  const errorCount = isError.reduce((sum, flag) => sum + flag, 0)
  const rootPlaces = errorCount === 0 ? limit : Math.ceil(limit / 2)
  let rootsTaken = 0
  for (let span = 0; span < count && rootsTaken < rootPlaces && places > 0; span++) {
    if (parents[span] !== ROOT) continue
    take(span)
    rootsTaken++
  }
  for (const reach of [NEAR_SPANS, count]) {
    const walked = new Uint8Array(count)
    for (let span = 0; span < count && places > 0; span++) {
      if (isError[span] !== 1) continue
      // Up to a root, a gap, the closing of a cycle, or what was walked before: never the same way twice.
      for (let at = span, steps = 0; at >= 0 && walked[at] === 0 && steps < reach; at = parents[at] ?? ROOT, steps++) {
        walked[at] = 1
        take(at)
      }
    }
  }
  if (places > 0) for (const span of byDepth(parents)) take(span)

  const indices: number[] = []
  for (let span = 0; span < count; span++) if (chosen[span] === 1) indices.push(span)
  return indices
}

/** All spans by their distance from the top of their tree, ties in the given order, members of cycles last. */
function byDepth(parents: Int32Array): Uint32Array {
  const depths = depthsOf(parents)
  const places = new Uint32Array(parents.length + 2)
  for (const depth of depths) places[depth + 1] = (places[depth + 1] ?? 0) + 1
  for (let depth = 1; depth < places.length; depth++) places[depth] = (places[depth] ?? 0) + (places[depth - 1] ?? 0)
  const order = new Uint32Array(parents.length)
  for (let span = 0; span < parents.length; span++) {
    const depth = depths[span] ?? 0
    const place = places[depth] ?? 0
    order[place] = span
    places[depth] = place + 1
  }
  return order
}

/** 0 for roots and spans whose parent is missing; the number of spans (deeper than any) for what hangs on a cycle. */
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
    // Where the walk ended: above a top, on a depth known before, or on its own path.
    let depth = at < 0 ? -1 : depths[at] === onPath ? cyclic : (depths[at] ?? 0)
    for (let below = path.pop(); below !== undefined; below = path.pop()) {
      depth = Math.min(depth + 1, cyclic)
      depths[below] = depth
    }
  }
  return depths
}
