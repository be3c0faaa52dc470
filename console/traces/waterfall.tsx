import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { formatNanos } from '../state/format.ts'
import { idOf } from './span-columns.ts'
import { ROW_HEIGHT, scrollTo, viewportOf } from './viewport.ts'
import type { WaterfallModel } from './waterfall-model.ts'
import { WaterfallRow } from './waterfall-row.tsx'

/** Shares of the axis that have a mark. */
const MARKS = [0, 0.25, 0.5, 0.75, 1]

/**
 * The spans of a trace as a treegrid (WAI-ARIA), of which only the rows in view are elements. Its arrow keys move, fold and unfold;
 * one row is in the order of the Tab key.
 */
export function Waterfall(props: {
  readonly model: WaterfallModel
  readonly selectedId: string | null
  readonly onSelect: (id: string) => void
}) {
  const { model, selectedId, onSelect } = props
  const { scroller, view, pageRows, wantsFocus, measure, moveTo } = useView(model)
  const rows = model.rows.value
  const active = model.active.value
  const keys = keysOf({ model, pageRows, moveTo, select: () => onSelect(idOf(model.columns, active)) })
  const press = (event: KeyboardEvent) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key]
    if (action === undefined) return
    event.preventDefault()
    wantsFocus.current = true
    action()
  }
  const open = (span: number) => {
    wantsFocus.current = true
    model.active.value = span
    onSelect(idOf(model.columns, span))
  }
  // The element of a row that leaves the view is used for one that enters it: creating 50 rows takes longer than a frame. The
  // active row has an element of its own, so that it keeps the focus.
  const elements = view.end - view.first
  const size = { height: `${view.contentHeight}px` }

  return (
    <div
      class="waterfall"
      role="treegrid"
      aria-label="Spans of the trace"
      aria-rowcount={rows.length + 1}
      aria-colcount={3}
      onKeyDown={press}
    >
      <Headings scale={model.scale.value} />
      <div class="wf-scroll" ref={scroller} onScroll={measure} role="presentation" style={size}>
        <div role="rowgroup" class="wf-content" style={size}>
          {drawnRows(view, model.rowOf(active)).map(row => {
            const span = rows[row] as number
            return (
              <WaterfallRow
                key={span === active ? 'active' : row % elements}
                model={model}
                span={span}
                row={row}
                top={view.topOf(row)}
                isActive={span === active}
                isSelected={selectedId !== null && idOf(model.columns, span) === selectedId}
                onOpen={() => open(span)}
              />
            )
          })}
        </div>
      </div>
    </div>
  )
}

/** Follows which rows are in view, and brings the active row into view when it changes. */
function useView(model: WaterfallModel) {
  const scroller = useRef<HTMLDivElement>(null)
  const [{ top, height }, setView] = useState({ top: 0, height: 600 })
  /** Whether the active row takes the focus when it is drawn next. */
  const wantsFocus = useRef(false)
  const rows = model.rows.value
  const active = model.active.value
  const activeRow = model.rowOf(active)
  const view = viewportOf(rows.length, top, height)
  useLayoutEffect(() => {
    const { first, end } = model.inView.peek()
    if (first !== view.first || end !== view.end) model.inView.value = { first: view.first, end: view.end }
  }, [model, view.first, view.end])

  const measure = () => {
    const element = scroller.current
    if (element) setView({ top: element.scrollTop, height: element.clientHeight })
  }
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element) return
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    measure()
    return () => observer.disconnect()
  }, [])
  // A search or an address changes the active row too.
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element || activeRow < 0) return
    const where = wantsFocus.current ? 'nearest' : 'center'
    const next = scrollTo(activeRow, rows.length, element.scrollTop, element.clientHeight, where)
    if (next !== element.scrollTop) element.scrollTop = next
    measure()
  }, [active, rows])
  useLayoutEffect(() => {
    if (!wantsFocus.current) return
    wantsFocus.current = false
    scroller.current?.querySelector<HTMLElement>(`[data-span="${active}"]`)?.focus({ preventScroll: true })
  })
  const pageRows = Math.max(1, Math.floor(height / ROW_HEIGHT) - 1)
  const moveTo = (row: number) => {
    const span = rows[Math.min(Math.max(row, 0), rows.length - 1)]
    if (span === undefined) return
    wantsFocus.current = true
    model.active.value = span
    setView(current => ({ ...current }))
  }
  return { scroller, view, pageRows, wantsFocus, measure, moveTo }
}

/** Returns what each key does. */
function keysOf(grid: {
  readonly model: WaterfallModel
  readonly pageRows: number
  readonly moveTo: (row: number) => void
  readonly select: () => void
}): Readonly<Record<string, () => void>> {
  const { model, pageRows, moveTo, select } = grid
  const active = model.active.value
  const row = model.rowOf(active)
  return {
    ArrowDown: () => moveTo(row + 1),
    j: () => moveTo(row + 1),
    ArrowUp: () => moveTo(row - 1),
    k: () => moveTo(row - 1),
    PageDown: () => moveTo(row + pageRows),
    PageUp: () => moveTo(row - pageRows),
    Home: () => moveTo(0),
    End: () => moveTo(model.rows.value.length - 1),
    ArrowRight: () => {
      if (model.isCollapsed(active)) model.fold(active, false)
      else if (model.hasChildren(active)) moveTo(row + 1)
    },
    ArrowLeft: () => {
      const parent = model.tree.parents[active] ?? -1
      if (model.hasChildren(active) && !model.isCollapsed(active)) model.fold(active, true)
      else if (parent >= 0) moveTo(model.rowOf(parent))
    },
    Enter: select,
    ' ': select,
  }
}

/** Returns the rows in view and the active one, which stays an element out of view, so that the focus is not lost. */
function drawnRows(view: ReturnType<typeof viewportOf>, activeRow: number): number[] {
  const inView = Array.from({ length: view.end - view.first }, (_, i) => view.first + i)
  if (activeRow >= 0 && activeRow < view.first) return [activeRow, ...inView]
  return activeRow >= view.end ? [...inView, activeRow] : inView
}

function Headings({ scale }: { readonly scale: WaterfallModel['scale']['value'] }) {
  return (
    <div role="rowgroup">
      <div role="row" aria-rowindex={1} class="wf-header">
        <div role="columnheader" class="wf-name">
          Service and name
        </div>
        <div role="columnheader" class="wf-duration">
          Duration
        </div>
        <div role="columnheader" class="wf-track">
          <span class="hidden">Time</span>
          {MARKS.map(mark => (
            <span key={mark} class="wf-mark" style={{ left: `${mark * 100}%` }} data-at={mark}>
              {mark === 0 ? '0' : formatNanos(Math.round(scale.timeAt(mark)))}
            </span>
          ))}
        </div>
      </div>
    </div>
  )
}
