import { signal } from '@preact/signals'
import type { TraceColumns } from '../api/generated/client.ts'
import { type CriticalPath, criticalPath } from './critical-path.ts'
import { findByText, findErrors, type Matches, nextMatch } from './find-spans.ts'
import { columnsOf, indexOfId, type SpanColumns } from './span-columns.ts'
import { arrange, collapseAll, reveal, type SpanTree, visibleRows } from './span-tree.ts'
import { idleScale, linearScale } from './time-scale.ts'

/** A trace without its spans. */
type TraceHead = Omit<TraceColumns, 'spans'>

/** A trace in memory, with what is folded, found and active in it. */
export class WaterfallModel {
  readonly head: TraceHead
  readonly columns: SpanColumns
  readonly tree: SpanTree
  /** How often each span was received, for those that were received more than once. */
  readonly repeats: ReadonlyMap<number, number>
  /** Spans with the status ERROR. */
  readonly errors: Matches
  /** Length of the axis in nanoseconds. */
  readonly span: number
  /** The visible spans, by row. */
  readonly rows
  /** Matches of the search. */
  readonly matches
  /** The axis. */
  readonly scale
  /** The rows in view. */
  readonly inView = signal({ first: 0, end: 0 })
  /** Spans of the critical path, while it is shown. */
  readonly critical = signal<CriticalPath | undefined>(undefined)
  /** The span of the row that has the focus, or would have it. */
  readonly active
  readonly #collapsed: Uint8Array
  /** Row of each visible span; made when a row is first read. */
  #rowOf: Int32Array | undefined

  constructor(trace: TraceColumns) {
    const { spans: _, ...head } = trace
    this.head = head
    this.columns = columnsOf(trace)
    this.tree = arrange(this.columns.parents)
    this.repeats = new Map(trace.repeated.spans.map((span, i) => [span, trace.repeated.counts[i] ?? 1]))
    this.errors = findErrors(this.columns, this.tree)
    this.span = Math.max(1, Number(BigInt(trace.endedAtUnixNano) - BigInt(trace.startedAtUnixNano)))
    this.#collapsed = new Uint8Array(this.columns.count)
    this.rows = signal(visibleRows(this.tree, this.#collapsed))
    this.matches = signal<Matches>(findByText(this.columns, this.tree, ''))
    this.scale = signal(linearScale(this.span))
    this.active = signal(this.tree.order[0] ?? 0)
  }

  isCollapsed(span: number): boolean {
    return this.#collapsed[span] === 1
  }

  hasChildren(span: number): boolean {
    return (this.tree.sizes[span] ?? 1) > 1
  }

  /** Returns the row of a span, or -1 if it is folded away. */
  rowOf(span: number): number {
    if (this.#rowOf === undefined) {
      this.#rowOf = new Int32Array(this.columns.count).fill(-1)
      const rows = this.rows.value
      for (let row = 0; row < rows.length; row++) this.#rowOf[rows[row] as number] = row
    }
    return this.#rowOf[span] ?? -1
  }

  /** Collapses or expands a span. */
  fold(span: number, on: boolean): void {
    if (!this.hasChildren(span) || this.isCollapsed(span) === on) return
    this.#collapsed[span] = on ? 1 : 0
    this.#refold()
  }

  /** Collapses or expands all spans. The active span stays in view: its root becomes active if it is folded away. */
  foldAll(on: boolean): void {
    collapseAll(this.tree, this.#collapsed, on)
    this.#refold()
    let active = this.active.value
    while (this.rowOf(active) < 0) active = this.tree.parents[active] ?? 0
    this.active.value = active
  }

  /** Makes a span active, and its row visible. */
  activate(span: number): void {
    if (reveal(this.tree, this.#collapsed, span)) this.#refold()
    this.active.value = span
  }

  /** Activates the span with an id. Reports whether the trace has it. */
  activateId(id: string): boolean {
    const span = indexOfId(this.columns, id)
    if (span >= 0) this.activate(span)
    return span >= 0
  }

  /** Draws idle time shorter than it is, or not. */
  compressIdle(on: boolean): void {
    this.scale.value = on ? idleScale(this.columns, this.tree, this.span) : linearScale(this.span)
  }

  /** Shows the critical path, or not. */
  showCritical(on: boolean): void {
    this.critical.value = on ? criticalPath(this.columns, this.tree) : undefined
  }

  search(text: string): void {
    this.matches.value = findByText(this.columns, this.tree, text)
  }

  /** Returns the next or the previous span among some. */
  next(matches: Matches, step: 1 | -1): number | undefined {
    return nextMatch(this.tree, matches, this.active.value, step)
  }

  #refold(): void {
    this.rows.value = visibleRows(this.tree, this.#collapsed)
    this.#rowOf = undefined
  }
}
