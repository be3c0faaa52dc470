import { SECOND_MS } from '../../schemas/units.ts'
import { type ListedSession, listSessions } from '../api/generated/client.ts'
import { NothingFound } from '../onboarding/nothing-found.tsx'
import { counted, formatCount, formatSeconds } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given, place } from '../state/router.ts'
import { timesOf } from '../state/time-range.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { choiceOf, type FilterRules, validQuery } from '../ui/filter-rules.ts'
import { ChoiceFilter, FINDING_OPTIONS, Filters, Pages, SurfaceFilter, TextFilter } from '../ui/filters.tsx'
import { Shown } from '../ui/states.tsx'
import { SessionLink, TimeAndAge, Title } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'
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
        <TimeAndAge iso={lastSeenAt} /> {timesOfArrival && <span class="quiet">received</span>}
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
        <TimeFilter label="Received" />
      </Filters>
      <Shown loaded={loaded} what="sessions">
        {({ sessions, nextCursor }) => (
          <>
            <DataTable
              caption="Sessions, last seen first"
              columns={COLUMNS}
              rows={sessions}
              keyOf={({ id }) => id}
              empty={<NothingFound kind="sessions" noun="session" />}
            />
            <p class="quiet">{counted(sessions.length, 'session')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

function parametersOf(query: URLSearchParams): Parameters<typeof listSessions>[0] {
  const texts = given(query, 'user', 'surface', 'hasFinding', 'hasReplay', 'cursor')
  return { limit: PAGE_SIZE, ...texts, ...timesOf(query) } as Parameters<typeof listSessions>[0]
}
