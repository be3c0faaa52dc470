import { useEffect, useState } from 'preact/hooks'
import { readSpans, readTrace } from '../api/generated/client.ts'
import { counted, formatCount, formatNanos, isoOfNanos } from '../state/format.ts'
import { isFocusFree, useKeys } from '../state/keys.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, changeQuery, place } from '../state/router.ts'
import { TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Copy, Fact, Facts, Time, Title } from '../ui/text.tsx'
import { CompletenessNote } from './completeness.tsx'
import { candidatesOf, spanOfFinding } from './finding-span.ts'
import { LogsPanel } from './logs-panel.tsx'
import { Minimap } from './minimap.tsx'
import { idOf, indexOfId, nameOf } from './span-columns.ts'
import { SpanPanel } from './span-details.tsx'
import { Waterfall } from './waterfall.tsx'
import { WaterfallModel } from './waterfall-model.ts'

/** A trace: all its spans, and everything of the one that `?span=` names, or in which the finding of `?finding=` occurred. */
export function TracePage({ id }: { readonly id: string }) {
  const loaded = useLoad(
    `trace ${id}`,
    async signal => new WaterfallModel(await readTrace({ traceId: id }, { signal })),
  )
  return (
    <>
      {loaded.value === undefined && <Title text="Trace" />}
      <Shown loaded={loaded} what="the trace">
        {model => <Trace model={model} />}
      </Shown>
    </>
  )
}

function Trace({ model }: { readonly model: WaterfallModel }) {
  const { query } = place.value
  const selected = query.get('span')
  const text = query.get('q') ?? ''
  const isUnknown = selected !== null && indexOfId(model.columns, selected) < 0
  const select = (span: string | undefined) => changeQuery({ span }, { replace: true })
  const show = (span: number | undefined) => {
    if (span === undefined) return
    model.activate(span)
    select(idOf(model.columns, span))
  }
  useEffect(() => {
    if (selected === null) return
    model.activateId(selected)
    // On a narrow screen the details would cover the row. A row that is not drawn yet is not there.
    document.querySelector('.wf-row.selected')?.scrollIntoView({ block: 'nearest' })
  }, [selected, model])
  useEffect(() => model.search(text), [text, model])
  const said = useFindingSpan(model, query.get('finding'), selected)
  const isCompressed = query.has('idle')
  const isCritical = query.has('critical')
  const hasLogs = query.has('logs')
  useEffect(() => model.compressIdle(isCompressed), [isCompressed, model])
  useEffect(() => model.showCritical(isCritical), [isCritical, model])
  useKeys({
    n: () => show(model.next(model.matches.value, 1)),
    p: () => show(model.next(model.matches.value, -1)),
    e: () => show(model.next(model.errors, 1)),
    i: () => toggle('idle'),
    c: () => toggle('critical'),
    l: () => toggle('logs'),
    Escape: () => changeQuery(hasLogs ? { logs: undefined } : { span: undefined }, { replace: true }),
    // Elsewhere the arrow scrolls, or moves in what has the focus.
    ArrowDown: () => isFocusFree() && focusTree(),
  })
  return (
    <>
      <Head model={model} />
      <Tools model={model} text={text} show={show} />
      {isUnknown && (
        <Notice title="The trace does not have this span" text={`No span with the id ${selected} is retained in it.`} />
      )}
      {said && (
        <p class="quiet" role="status">
          {said}
        </p>
      )}
      {model.columns.count > 1 && <Minimap model={model} />}
      <div class={hasLogs || (selected !== null && !isUnknown) ? 'wf-layout with-panel' : 'wf-layout'}>
        <Waterfall model={model} selectedId={selected} onSelect={select} />
        {hasLogs && <Logs model={model} selectedId={selected} onSelect={select} />}
        {selected !== null && !isUnknown && !hasLogs && (
          <SpanPanel traceId={model.head.traceId} spanId={selected} onClose={() => select(undefined)} />
        )}
      </div>
    </>
  )
}

function Logs(props: {
  readonly model: WaterfallModel
  readonly selectedId: string | null
  readonly onSelect: (span: string) => void
}) {
  const { traceId, startedAtUnixNano } = props.model.head
  return (
    <LogsPanel
      traceId={traceId}
      startNanos={BigInt(startedAtUnixNano)}
      selectedId={props.selectedId}
      onSelect={props.onSelect}
      onClose={() => toggle('logs')}
    />
  )
}

interface FoundProps {
  readonly model: WaterfallModel
  /** The text of the search. */
  readonly text: string
  readonly show: (span: number | undefined) => void
}

/** The search and the switches above the spans. */
function Tools({ model, text, show }: FoundProps) {
  return (
    <div class="wf-tools">
      <TextFilter name="q" label="Find a name, a service or a span id" type="search" />
      <Found model={model} text={text} show={show} />
      <button type="button" onClick={() => model.foldAll(true)}>
        Collapse all
      </button>
      <button type="button" onClick={() => model.foldAll(false)}>
        Expand all
      </button>
      <Toggle name="idle" text={idleText(model)} />
      <Toggle name="critical" text={criticalText(model)} />
      <Toggle name="logs" text="Logs beside" />
      {model.errors.spans.length > 0 && (
        <button type="button" onClick={() => show(model.next(model.errors, 1))}>
          Next error <kbd>e</kbd>
        </button>
      )}
    </div>
  )
}

/** Selects the first span in which a finding occurred, as the address names it. Returns what there is to state about that. */
function useFindingSpan(model: WaterfallModel, finding: string | null, selected: string | null): string {
  const [said, say] = useState('')
  const isWanted = finding !== null && selected === null
  useEffect(() => {
    if (!isWanted) return
    const left = new AbortController()
    const ids = candidatesOf(model.columns, model.errors.spans)
    say('Looking for the span of the finding…')
    spanOfFinding(finding, ids, spanIds =>
      readSpans({ traceId: model.head.traceId, body: { spanIds: [...spanIds] } }, { signal: left.signal }),
    ).then(
      span => {
        if (left.signal.aborted) return
        const searched = counted(ids.length, 'span')
        say(span === undefined ? `The finding is in none of the ${searched} that were searched, errors first.` : '')
        if (span !== undefined) changeQuery({ span, finding: undefined }, { replace: true })
      },
      () => left.signal.aborted || say('The span of the finding could not be looked up.'),
    )
    return () => left.abort()
  }, [model, finding, isWanted])
  return isWanted ? said : ''
}

/** A part of the view that the address switches on. Its first letter does the same. */
type Part = 'idle' | 'critical' | 'logs'

function toggle(name: Part): void {
  changeQuery({ [name]: place.value.query.has(name) ? undefined : '1' }, { replace: true })
}

function Toggle({ name, text }: { readonly name: Part; readonly text: string }) {
  return (
    <button type="button" aria-pressed={place.value.query.has(name)} onClick={() => toggle(name)}>
      {text} <kbd>{name[0]}</kbd>
    </button>
  )
}

function idleText({ scale }: WaterfallModel): string {
  const { gaps } = scale.value
  const idle = gaps.reduce((sum, { from, to }) => sum + to - from, 0)
  return idle > 0 ? `Idle ${formatNanos(idle)} compressed` : 'Compress idle time'
}

function criticalText({ critical }: WaterfallModel): string {
  const count = critical.value?.spans.length
  return count === undefined ? 'Critical path' : `Critical path of ${counted(count, 'span')}`
}

function focusTree(): boolean {
  document.querySelector<HTMLElement>('.wf-row[tabindex="0"]')?.focus()
  return true
}

function Head({ model }: { readonly model: WaterfallModel }) {
  const { head, columns, tree, errors } = model
  const root = tree.order[0] ?? 0
  const depth = tree.depths.reduce((most, each) => Math.max(most, each), 0) + 1
  return (
    <>
      <Title text={nameOf(columns, root)} quiet="trace" />
      <p class="quiet trace-id">
        <code>{head.traceId}</code> <Copy text={head.traceId} what="id" />{' '}
        <a href={addressOf('logs', { trace: head.traceId })}>Logs of the trace</a>
      </p>
      <Facts>
        <Fact name="Duration">{formatNanos(model.span)}</Fact>
        <Fact name="Spans">{formatCount(head.spanCount)}</Fact>
        <Fact name="Errors">{formatCount(errors.spans.length)}</Fact>
        <Fact name="Services">{formatCount(head.services.length)}</Fact>
        <Fact name="Depth">{formatCount(depth)}</Fact>
        <Fact name="Started">
          <Time iso={isoOfNanos(head.startedAtUnixNano)} precise />
        </Fact>
      </Facts>
      <CompletenessNote
        model={model}
        onShow={span => {
          model.activate(span)
          changeQuery({ span: idOf(columns, span) }, { replace: true })
        }}
      />
    </>
  )
}

function Found({ model, text, show }: FoundProps) {
  const matches = model.matches.value
  if (text.trim() === '') return null
  return (
    <span class="found">
      <span role="status">
        {matches.spans.length === 0 ? 'No span matches' : `${formatCount(matches.spans.length)} found`}
      </span>
      <button type="button" disabled={matches.spans.length === 0} onClick={() => show(model.next(matches, -1))}>
        Previous <kbd>p</kbd>
      </button>
      <button type="button" disabled={matches.spans.length === 0} onClick={() => show(model.next(matches, 1))}>
        Next <kbd>n</kbd>
      </button>
    </span>
  )
}
