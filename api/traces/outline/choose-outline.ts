/** The part of a trace by which its outline is chosen. */
export interface OutlinedTree {
  /** Spans without a parent in the trace. */
  readonly tops: readonly number[]
  readonly size: number
  children(span: number): Uint32Array
  isError(span: number): boolean
  leadsToError(span: number): boolean
  isParentMissing(span: number): boolean
  nameNumber(span: number): number
  serviceNumber(span: number): number
  startMs(span: number): number
  durationMs(span: number): number
}

/** A span of an outline, with the siblings that it represents. */
interface ChosenSpan {
  readonly span: number
  readonly depth: number
  /** Whether it is on the path that ends last. */
  readonly isCritical: boolean
  /** Number of siblings with the same name, service and outcome, itself included. */
  readonly count: number
  /** Time of all of them. */
  readonly totalMs: number
  /** Number of its children that are not shown, nor represented. */
  readonly hiddenChildCount: number
}

/** Siblings that are shown as one. */
interface Group {
  /** The one on the critical path, else the longest. */
  span: number
  count: number
  totalMs: number
  isCritical: boolean
  readonly leadsToError: boolean
}

interface Node extends Group {
  readonly shown: Node[]
  hiddenChildCount: number
}

/** The part of an outline that paths to errors may take, so that there is room for what took long. */
const ERROR_PART = 0.7
/** Most groups of the children of a span. What is in none is counted as hidden. */
const GROUPS_MAX = 10_000

/**
 * Chooses the spans of an outline, from these downwards, in the order of the tree. Siblings of the same name, service and outcome
 * are one. Paths to errors come first, then the critical path, which descends to the child that ends last, then what took longest.
 */
export function chooseOutline(tree: OutlinedTree, from: readonly number[], limit: number): ChosenSpan[] {
  const isSeen = new Uint8Array(tree.size)
  const top: Node = { ...emptyGroup(-1, false), isCritical: true, shown: [], hiddenChildCount: 0 }
  const frontier: { readonly group: Group; readonly parent: Node }[] = []
  let errorRoom = Math.ceil(limit * ERROR_PART)
  const expand = (parent: Node, children: ArrayLike<number>) => {
    const groups = groupsOf(tree, children, { isSeen, isCritical: parent.isCritical })
    parent.hiddenChildCount = children.length
    const best = [true, false].flatMap(errorsFirst =>
      groups.sort((a, b) => compareGroups(a, b, errorsFirst)).slice(0, limit),
    )
    for (const group of new Set(best)) frontier.push({ group, parent })
  }
  expand(top, from)
  for (let room = limit; room > 0 && frontier.length > 0; room--) {
    let best = 0
    for (let i = 1; i < frontier.length; i++) {
      const [a, b] = [frontier[i]?.group, frontier[best]?.group]
      if (a && b && compareGroups(a, b, errorRoom > 0) < 0) best = i
    }
    const [chosen] = frontier.splice(best, 1)
    if (chosen === undefined) break
    const { group, parent } = chosen
    if (group.leadsToError) errorRoom--
    const node: Node = { ...group, shown: [], hiddenChildCount: 0 }
    parent.shown.push(node)
    parent.hiddenChildCount -= group.count
    expand(node, tree.children(group.span))
  }
  return [...inOrder(top.shown, 0)]
}

function emptyGroup(span: number, leadsToError: boolean): Group {
  return { span, count: 0, totalMs: 0, isCritical: false, leadsToError }
}

function compareGroups(a: Group, b: Group, errorsFirst: boolean): number {
  const rank = ({ leadsToError, isCritical }: Group) => (leadsToError && errorsFirst ? 2 : isCritical ? 1 : 0)
  return rank(b) - rank(a) || b.totalMs - a.totalMs || a.span - b.span
}

/** Returns the groups of siblings. A span that was seen before is on a cycle of parents, and is left out. */
function groupsOf(
  tree: OutlinedTree,
  spans: ArrayLike<number>,
  { isSeen, isCritical }: { readonly isSeen: Uint8Array; readonly isCritical: boolean },
): Group[] {
  const groups = new Map<string, Group>()
  let last: { group: Group; span: number; endMs: number } | undefined
  for (let i = 0; i < spans.length; i++) {
    const span = spans[i] ?? 0
    if (isSeen[span] === 1) continue
    isSeen[span] = 1
    const leadsToError = tree.leadsToError(span)
    const outcome = `${tree.isError(span)} ${leadsToError} ${tree.isParentMissing(span)}`
    const key = `${tree.nameNumber(span)} ${tree.serviceNumber(span)} ${outcome}`
    const group = groups.get(key) ?? emptyGroup(span, leadsToError)
    if (group.count === 0 && groups.size === GROUPS_MAX) continue
    groups.set(key, group)
    const durationMs = tree.durationMs(span)
    if (durationMs > tree.durationMs(group.span)) group.span = span
    group.count++
    group.totalMs += Math.max(durationMs, 0)
    const endMs = tree.startMs(span) + durationMs
    if (last === undefined || endMs > last.endMs) last = { group, span, endMs }
  }
  if (isCritical && last !== undefined) {
    last.group.isCritical = true
    last.group.span = last.span
  }
  return [...groups.values()]
}

/** Returns nodes with what is shown below them, siblings by their starts. An outline has as few levels as spans. */
function* inOrder(nodes: Node[], depth: number): Generator<ChosenSpan> {
  for (const node of nodes.sort((a, b) => a.span - b.span)) {
    const { span, isCritical, count, totalMs, hiddenChildCount } = node
    yield { span, depth, isCritical, count, totalMs, hiddenChildCount }
    yield* inOrder(node.shown, depth + 1)
  }
}
