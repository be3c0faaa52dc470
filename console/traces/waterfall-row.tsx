import { counted, formatNanos } from '../state/format.ts'
import { nameOf, serviceOf } from './span-columns.ts'
import type { WaterfallModel } from './waterfall-model.ts'

const ERROR_STATUS = 2
const NOT_RETAINED = -2
/** Depth from which rows are not moved further to the right, so that their names stay in view. */
const DEEPEST = 14

/** A span as a row of the treegrid. */
export function WaterfallRow(props: {
  readonly model: WaterfallModel
  readonly span: number
  readonly row: number
  readonly top: number
  readonly isActive: boolean
  readonly isSelected: boolean
  readonly onOpen: () => void
}) {
  const { model, span, row, top, isActive, isSelected, onOpen } = props
  const { columns, tree } = model
  const depth = tree.depths[span] as number
  const hasChildren = model.hasChildren(span)
  const isCollapsed = model.isCollapsed(span)
  const hue = columns.serviceHues[columns.serviceIndexes[span] as number] ?? 0
  const isError = columns.statuses[span] === ERROR_STATUS
  const isCritical = model.critical.value?.flags[span] === 1
  return (
    <div
      role="row"
      class={classesOf(model, span, isSelected)}
      style={{ top: `${top}px` }}
      tabIndex={isActive ? 0 : -1}
      data-span={span}
      {...(isActive && { 'data-row': true })}
      aria-rowindex={row + 2}
      aria-level={depth + 1}
      aria-posinset={tree.siblingPositions[span]}
      aria-setsize={tree.siblingCounts[span]}
      aria-selected={isSelected}
      {...(hasChildren && { 'aria-expanded': !isCollapsed })}
      onClick={onOpen}
    >
      <div role="gridcell" class="wf-name" style={{ paddingLeft: `${Math.min(depth, DEEPEST) * 12 + 4}px` }}>
        <Twisty model={model} span={span} hasChildren={hasChildren} isCollapsed={isCollapsed} />
        <span class="wf-service" data-hue={hue}>
          {serviceOf(columns, span) || '–'}
        </span>
        <span class="wf-text">{nameOf(columns, span)}</span>
        {isError && <span class="tag bad">error</span>}
        <Doubts model={model} span={span} />
      </div>
      <div role="gridcell" class="wf-duration">
        {formatNanos(columns.durations[span] as number)}
      </div>
      <Track model={model} span={span} hue={hue} isCritical={isCritical} />
    </div>
  )
}

function classesOf({ columns, matches, critical }: WaterfallModel, span: number, isSelected: boolean): string {
  const isCritical = critical.value?.flags[span] === 1
  return [
    'wf-row',
    matches.value.flags[span] === 1 && 'match',
    columns.statuses[span] === ERROR_STATUS && 'error',
    isSelected && 'selected',
    isCritical && 'critical',
    critical.value && !isCritical && 'aside',
  ]
    .filter(Boolean)
    .join(' ')
}

/** The bar of a span on the axis of time. */
function Track(props: {
  readonly model: WaterfallModel
  readonly span: number
  readonly hue: number
  readonly isCritical: boolean
}) {
  const { model, span, hue, isCritical } = props
  const start = model.columns.starts[span] as number
  const duration = model.columns.durations[span] as number
  const scale = model.scale.value
  const left = scale.shareOf(start) * 100
  const width = Math.max(0, scale.shareOf(start + Math.max(duration, 0)) * 100 - left)
  return (
    <div role="gridcell" class="wf-track">
      <span class="hidden">{`begins after ${formatNanos(start)}${isCritical ? ', on the critical path' : ''}`}</span>
      {scale.gaps.map(({ from, to }) => (
        <span
          key={from}
          class="wf-gap"
          style={{
            left: `${scale.shareOf(from) * 100}%`,
            width: `${(scale.shareOf(to) - scale.shareOf(from)) * 100}%`,
          }}
        />
      ))}
      <span class="wf-bar" data-hue={hue} style={{ left: `${left}%`, width: `${width}%` }} />
    </div>
  )
}

function Twisty(props: {
  readonly model: WaterfallModel
  readonly span: number
  readonly hasChildren: boolean
  readonly isCollapsed: boolean
}) {
  const { model, span, hasChildren, isCollapsed } = props
  if (!hasChildren) return <span class="wf-twisty" aria-hidden="true" />
  const fold = (event: Event) => {
    event.stopPropagation()
    model.fold(span, !isCollapsed)
  }
  return (
    <>
      <span class="wf-twisty" aria-hidden="true" onClick={fold}>
        {isCollapsed ? '▸' : '▾'}
      </span>
      {isCollapsed && <span class="wf-below">{`+${((model.tree.sizes[span] as number) - 1).toLocaleString()}`}</span>}
    </>
  )
}

/** What is unusual about a span: a parent that is missing, a cycle, repeated receipts, clocks that disagree. */
function Doubts({ model, span }: { readonly model: WaterfallModel; readonly span: number }) {
  const { columns, tree } = model
  const parent = tree.parents[span] as number
  const repeats = model.repeats.get(span)
  const isBefore = parent >= 0 && (columns.starts[span] as number) < (columns.starts[parent] as number)
  return (
    <>
      {columns.parents[span] === NOT_RETAINED && <span class="tag doubt">parent missing</span>}
      {tree.cuts.has(span) && <span class="tag doubt">cycle</span>}
      {repeats !== undefined && <span class="tag doubt">{`received ${counted(repeats, 'time')}`}</span>}
      {isBefore && <span class="tag doubt">begins before its parent</span>}
      {(columns.durations[span] as number) < 0 && <span class="tag doubt">ends before it begins</span>}
    </>
  )
}
