import { SPAN_STATUSES, type TraceColumns } from '../../schemas/http/traces/schemas.ts'
import { counted, printable } from '../terminal.ts'

const TIME_WIDTH = 12
/** Deeper spans are drawn at this depth. */
const MOST_DEPTH = 30

/** Returns the lines of a trace as a tree: when each span started, how long it took, its service and its name. */
export function drawTrace(trace: TraceColumns, maxSpans: number): string[] {
  const { spans, names, services } = trace
  const starts = startsOf(trace)
  const serviceWidth = Math.min(Math.max(0, ...services.map(({ length }) => length)), 24)
  const nameOf = (i: number) => names[spans.names[i] ?? -1] ?? '…'
  const serviceOf = (i: number) => services[spans.services[i] ?? -1] ?? '…'
  const lines = treeOrder(spans.parents)
    .slice(0, maxSpans)
    .map(([i, depth]) => {
      const status = SPAN_STATUSES[spans.statuses[i] ?? 0] === 'ERROR' ? '  ERROR' : ''
      const parent = spans.parents[i] === -2 ? '  (its parent is missing)' : ''
      const times = [milliseconds(starts[i] ?? 0), milliseconds(spans.durationNanos[i] ?? 0)]
      const name = `${'  '.repeat(Math.min(depth, MOST_DEPTH))}${printable(nameOf(i))}${status}${parent}`
      const service = printable(serviceOf(i)).padEnd(serviceWidth)
      return `${times.map(time => time.padStart(TIME_WIDTH)).join('')}  ${service}  ${name}`
    })
  const left = trace.spanCount - lines.length
  return left > 0 ? [...lines, `… and ${left} more ${left === 1 ? 'span' : 'spans'}`] : lines
}

/** Returns one line on how complete a trace is. */
export function describeCompleteness({ completeness, missingParents }: TraceColumns): string {
  const { state, settledBefore, reasons } = completeness
  if (state === 'complete') return `complete up to ${settledBefore}`
  const missing = missingParents.length > 0 ? `, ${counted(missingParents.length, 'missing parent')}` : ''
  return `${state}: ${reasons.join(', ')}${missing}`
}

/** Returns when each span started, in nanoseconds after the first one. */
function startsOf({ spans }: TraceColumns): number[] {
  let at = 0
  return spans.startDeltaNanos.map(delta => {
    at += delta
    return at
  })
}

/** Returns the spans with their depths, each before its children. Spans of a cycle come last, as roots. */
function treeOrder(parents: readonly number[]): [span: number, depth: number][] {
  const children = new Map<number, number[]>()
  const roots: number[] = []
  parents.forEach((parent, i) => {
    if (parent < 0) roots.push(i)
    else {
      const known = children.get(parent)
      if (known === undefined) children.set(parent, [i])
      else known.push(i)
    }
  })
  const order: [number, number][] = []
  const seen = new Set<number>()
  const open: [number, number][] = []
  for (const root of [...roots, ...parents.keys()]) {
    open.push([root, 0])
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [span, depth] = next
      if (seen.has(span)) continue
      seen.add(span)
      order.push(next)
      for (const child of (children.get(span) ?? []).toReversed()) open.push([child, depth + 1])
    }
  }
  return order
}

function milliseconds(nanos: number): string {
  return `${(nanos / 1_000_000).toFixed(3)} ms`
}
