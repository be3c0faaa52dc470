import { SECOND_MS } from '../../schemas/units.ts'
import { type ListedSession, listSessions } from '../api/generated/client.ts'
import { NoData } from '../onboarding/no-data.tsx'
import { counted, formatCount, formatSeconds } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given, place, present } from '../state/router.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { choiceOf, type FilterRules, validQuery } from '../ui/filter-rules.ts'
import {
  ChoiceFilter,
  FINDING_OPTIONS,
  Filters,
  Pages,
  PERIOD_OPTIONS,
  SurfaceFilter,
  startOf,
  TextFilter,
} from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { SessionLink, Time, Title } from '../ui/text.tsx'
import { personOf } from './person.ts'

const PAGE_SIZE = 50
const REPLAY_OPTIONS = [
  ['', 'With or without'],
  ['true', 'With a recording'],
] as const

const RULES: FilterRules = { hasFinding: choiceOf(FINDING_OPTIONS), hasReplay: choiceOf(REPLAY_OPTIONS) }

const COLUMNS: readonly Column<ListedSession>[] = [
  {
    head: 'Session',
    cell: ({ id, identity }) => (
      <SessionLink isRow id={id}>
        <span class="type">{identity ? personOf(identity) : 'Unknown user'}</span>
        <span class="message">{id}</span>
      </SessionLink>
    ),
  },
  {
    head: 'Length',
    isNumber: true,
    cell: ({ firstSeenAt, lastSeenAt }) =>
      formatSeconds((Date.parse(lastSeenAt) - Date.parse(firstSeenAt)) / SECOND_MS),
  },
  { head: 'Traces', isNumber: true, cell: ({ traceCount }) => formatCount(traceCount) },
  { head: 'Errors', isNumber: true, cell: ({ errorCount }) => formatCount(errorCount) },
  {
    head: 'Findings',
    isNumber: true,
    cell: ({ findingCount }) => (findingCount > 0 ? <span class="tag bad">{formatCount(findingCount)}</span> : '0'),
  },
  {
    head: 'Recording',
    cell: ({ replayChunkCount }) => (replayChunkCount > 0 ? <span class="tag">recorded</span> : '–'),
  },
  {
    head: 'Last seen',
    cell: ({ lastSeenAt, timesOfArrival }) => (
      <>
        <Time iso={lastSeenAt} /> {timesOfArrival && <span class="quiet">received</span>}
      </>
    ),
  },
]

/** The list of sessions, last seen first. */
export function SessionsPage() {
  const query = validQuery(place.value.query, RULES)
  const loaded = useLoad(`sessions ${query}`, signal => listSessions(parametersOf(query), { signal }))
  return (
    <>
      <Title text="Sessions" />
      <Filters>
        <TextFilter name="user" label="User" type="search" placeholder="ada@example.com" />
        <ChoiceFilter name="hasFinding" label="Findings" options={FINDING_OPTIONS} />
        <ChoiceFilter name="hasReplay" label="Recording" options={REPLAY_OPTIONS} />
        <SurfaceFilter />
        <ChoiceFilter name="last" label="Received" options={[['', 'Any time'], ...PERIOD_OPTIONS]} />
      </Filters>
      <Shown loaded={loaded} what="sessions">
        {({ sessions, nextCursor }) => (
          <>
            <DataTable
              caption="Sessions, last seen first"
              columns={COLUMNS}
              rows={sessions}
              keyOf={({ id }) => id}
              empty={<NoSessions isFiltered={query.size > 0} />}
            />
            <p class="quiet">{counted(sessions.length, 'session')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

function NoSessions({ isFiltered }: { readonly isFiltered: boolean }) {
  return (
    <NoData kind="sessions">
      {isFiltered ? (
        <Notice title="No session matches" text="Widen the time, or clear a filter." />
      ) : (
        <Notice title="No sessions yet" text="A session appears here a moment after it begins." />
      )}
    </NoData>
  )
}

function parametersOf(query: URLSearchParams): Parameters<typeof listSessions>[0] {
  const texts = given(query, 'user', 'surface', 'hasFinding', 'hasReplay', 'cursor')
  const times = present({ $from: startOf(query.get('last')) })
  return { limit: PAGE_SIZE, ...texts, ...times } as Parameters<typeof listSessions>[0]
}
