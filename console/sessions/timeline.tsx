import { computed } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { readSessionTimeline, type TimelineEntry, type TimelinePage } from '../api/generated/client.ts'
import { type SessionClock, useFollowed } from '../replay/follow.ts'
import { counted, formatNanos } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { ChoiceFilter, Filters, Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'
import { personOf } from './person.ts'

const PAGE_SIZE = 200
/** How much of the time before the clock is read with it. */
const BEFORE_MS = 60_000
const KINDS = [
  ['', 'Everything'],
  ['finding', 'Findings'],
  ['span', 'Spans'],
  ['log', 'Log records'],
  ['finding,log', 'Findings and log records'],
  ['heartbeat,identity,replay', 'Heartbeats, identities, replay'],
] as const

interface Props {
  readonly id: string
  readonly startedAt: string
  /** The clock of the recording, which the page of the timeline follows. */
  readonly clock: SessionClock | undefined
}

/** Everything of a session in the order of time. */
export function Timeline({ id, startedAt, clock }: Props) {
  const { kinds, cursor } = given(place.value.query, 'kinds', 'cursor')
  // A page that the user has chosen stays.
  const followed = cursor === undefined ? clock : undefined
  const [from, setFrom] = useState<number>()
  const loaded = useLoad(JSON.stringify(['timeline', id, kinds, cursor, from]), signal =>
    readSessionTimeline(
      {
        sessionId: id,
        limit: PAGE_SIZE,
        ...(kinds && { kinds }),
        ...(cursor ? { cursor } : from !== undefined && { $from: new Date(from).toISOString() }),
      },
      { signal },
    ),
  )
  const list = useRef<HTMLOListElement>(null)
  const entries = loaded.value?.entries ?? []
  const { current, isBefore, isBehind } = useMemo(
    () => placeOf(followed, loaded.value, from),
    [followed, loaded.value, from],
  )
  useFollowed(list, current.value)

  const isElsewhere = (isBefore.value || isBehind.value) && !loaded.isLoading
  useEffect(() => {
    if (isElsewhere && followed) setFrom(followed.time.peek() - (isBefore.peek() ? BEFORE_MS : 0))
  }, [isElsewhere])

  return (
    <section>
      <h2>Timeline</h2>
      <Filters>
        <ChoiceFilter name="kinds" label="Show" options={KINDS} isOpen />
      </Filters>
      <Shown loaded={loaded} what="the timeline">
        {({ nextCursor }) => (
          <>
            {entries.length === 0 && <Notice title="Nothing of this kind" text="Show everything to see the session." />}
            <ol class={clock ? 'timeline followed' : 'timeline'} ref={list} aria-label="Timeline">
              {entries.map((entry, i) => (
                <TimelineRow
                  key={i}
                  entry={entry}
                  startedAt={startedAt}
                  isCurrent={i === current.value}
                  onSeek={clock?.seek}
                />
              ))}
            </ol>
            <p class="quiet">{counted(entries.length, 'entry', 'entries')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </section>
  )
}

/** Follows where the clock is in a page of the timeline: its entry, or that it is before or behind the page. */
function placeOf(clock: SessionClock | undefined, page: TimelinePage | undefined, from: number | undefined) {
  const times = page?.entries.map(({ at }) => Date.parse(at)) ?? []
  const hasMore = page?.nextCursor != null
  const time = () => clock?.time.value ?? Number.NaN
  return {
    current: computed(() => times.findLastIndex(at => at <= time())),
    isBefore: computed(() => from !== undefined && time() < Math.min(from, times[0] ?? from)),
    isBehind: computed(() => hasMore && time() > (times.at(-1) ?? Number.POSITIVE_INFINITY)),
  }
}

/** An entry of a timeline. Findings, spans and log records lead to their pages. */
function TimelineRow(props: {
  readonly entry: TimelineEntry
  readonly startedAt: string
  readonly isCurrent: boolean
  /** Has the player go to the time of the entry, where there is one. */
  readonly onSeek: ((at: number) => void) | undefined
}) {
  const { entry, startedAt, isCurrent, onSeek } = props
  const offset = (Date.parse(entry.at) - Date.parse(startedAt)) * 1e6
  // Of these, only the time of arrival is known.
  const isArrival = entry.kind === 'heartbeat' || entry.kind === 'identity'
  return (
    <li class={`timeline-${entry.kind}`} aria-current={isCurrent ? 'time' : undefined}>
      <span class="timeline-time">
        {onSeek ? (
          <button type="button" class="plain" onClick={() => onSeek(Date.parse(entry.at))} title="Play from this time">
            <Time iso={entry.at} exact />
          </button>
        ) : (
          <Time iso={entry.at} exact />
        )}
        {isArrival ? (
          <span class="quiet"> received</span>
        ) : (
          offset >= 0 && <span class="quiet">{` +${formatNanos(offset)}`}</span>
        )}
      </span>
      <span class="tag">{entry.kind}</span>
      <span class="timeline-text">{textOf(entry)}</span>
    </li>
  )
}

function textOf(entry: TimelineEntry): ComponentChildren {
  switch (entry.kind) {
    case 'span':
      return (
        <a data-row href={addressOf(`traces/${entry.traceId}`, { span: entry.spanId })}>
          {entry.serviceName || '–'}: {entry.name} {entry.status === 'ERROR' && <span class="tag bad">error</span>}{' '}
          <span class="quiet">{formatNanos(entry.durationMs * 1e6)}</span>
        </a>
      )
    case 'finding':
      return (
        <a data-row href={addressOf(`findings/${entry.findingId}`)}>
          <strong>{entry.type || 'Exception'}</strong> {entry.message}
        </a>
      )
    case 'log':
      return (
        <>
          <span class={entry.severityNumber >= 17 ? 'tag bad' : 'tag'}>{entry.severityText ?? 'log'}</span>{' '}
          {entry.body || entry.eventName}{' '}
          {entry.traceId && (
            <a data-row href={addressOf(`traces/${entry.traceId}`, { span: entry.spanId })}>
              Trace
            </a>
          )}
        </>
      )
    case 'heartbeat':
      return `from device ${entry.deviceId ?? 'unknown'}`
    case 'identity':
      return `${personOf(entry)} (${entry.source.name})`
    case 'replay':
      return `${counted(entry.eventCount, 'event')} of window ${entry.windowId}${entry.hasFullSnapshot ? ', with a full snapshot' : ''}`
  }
}
