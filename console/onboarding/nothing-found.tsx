import { chooseRange } from '../state/choose-range.ts'
import { place } from '../state/router.ts'
import { ANY_TIME, describeRange, LAST_DAY, rangeOf, type TimeRange } from '../state/time-range.ts'
import { Notice } from '../ui/states.tsx'
import type { ListKind } from './arrivals.ts'
import { NoData } from './no-data.tsx'

/** Replaces the entries of an empty list: the time that was searched, and how to widen it. Shows how to send where nothing was. */
export function NothingFound(props: {
  readonly kind: ListKind
  /** An entry of the list: `log record`. */
  readonly noun: string
  readonly otherwise?: TimeRange
}) {
  const { kind, noun, otherwise = LAST_DAY } = props
  const { query } = place.value
  const range = rangeOf(query, otherwise)
  const isFiltered = [...query.keys()].some(name => !['from', 'to', 'wrap', 'live'].includes(name))
  const isAll = range.from === ANY_TIME.from
  const searched = `The time that was searched: ${describeRange(range)}.`
  return (
    <NoData kind={kind}>
      <Notice
        title={isFiltered ? `No ${noun} matches` : `No ${noun}s in this time`}
        text={isFiltered ? `${searched} Clear a filter, or search another time.` : searched}
      >
        {!isAll && (
          <button type="button" onClick={() => chooseRange(ANY_TIME)}>
            Search any time
          </button>
        )}
      </Notice>
    </NoData>
  )
}
