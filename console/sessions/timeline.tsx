import { computed } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { readSessionTimeline, type TimelinePage } from '../api/generated/client.ts'
import { useFollowed } from '../replay/follow.ts'
import type { SessionClock } from '../replay/session-clock.ts'
import { formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given } from '../state/parameters.ts'
import { place } from '../state/router.ts'
import { ChoiceFilter, Filters, Pages } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { TimelineRow } from './timeline-row.tsx'

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
  const loaded = useLoad(JSON.stringify([id, kinds, cursor, from]), signal =>
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
        <ChoiceFilter name="kinds" label="Show" options={KINDS} />
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
            <p class="quiet">
              {entries.length === 1 ? '1 entry' : `${formatCount(entries.length)} entries`} on this page
            </p>
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
