import { listSessions } from '../api/generated/client.ts'
import { counted, formatCount, formatSeconds } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given, present } from '../state/parameters.ts'
import { place } from '../state/router.ts'
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
import { SessionLink } from '../ui/session-link.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'

const PAGE_SIZE = 50
const REPLAY_OPTIONS = [
  ['', 'With or without'],
  ['true', 'With a recording'],
] as const

/** The list of sessions, last seen first. */
export function SessionsPage() {
  const { query } = place.value
  const loaded = useLoad(query.toString(), signal => listSessions(parametersOf(query), { signal }))
  return (
    <>
      <Title text="Sessions" />
      <Filters>
        <TextFilter name="user" label="User" type="search" placeholder="ada@example.com" />
        <ChoiceFilter name="hasFinding" label="Findings" options={FINDING_OPTIONS} />
        <ChoiceFilter name="hasReplay" label="Recording" options={REPLAY_OPTIONS} />
        <SurfaceFilter />
        <ChoiceFilter name="last" label="Seen" options={[['', 'Any time'], ...PERIOD_OPTIONS]} />
      </Filters>
      <Shown loaded={loaded} what="sessions">
        {({ sessions, nextCursor }) => (
          <>
            {sessions.length === 0 && <NoSessions isFiltered={query.size > 0} />}
            {sessions.length > 0 && (
              <table class="list">
                <caption class="hidden">Sessions, last seen first</caption>
                <thead>
                  <tr>
                    <th scope="col">Session</th>
                    <th scope="col" class="number">
                      Length
                    </th>
                    <th scope="col" class="number">
                      Traces
                    </th>
                    <th scope="col" class="number">
                      Errors
                    </th>
                    <th scope="col" class="number">
                      Findings
                    </th>
                    <th scope="col">Recording</th>
                    <th scope="col">Last seen</th>
                  </tr>
                </thead>
                <tbody>
                  {sessions.map(session => (
                    <tr key={session.id}>
                      <th scope="row">
                        <SessionLink isRow id={session.id}>
                          <span class="type">
                            {session.identity?.name ?? session.identity?.identifier ?? 'Unknown user'}
                          </span>
                          <span class="message">{session.id}</span>
                        </SessionLink>
                      </th>
                      <td data-label="Length" class="number">
                        {formatSeconds((Date.parse(session.lastSeenAt) - Date.parse(session.firstSeenAt)) / 1_000)}
                      </td>
                      <td data-label="Traces" class="number">
                        {formatCount(session.traceCount)}
                      </td>
                      <td data-label="Errors" class="number">
                        {formatCount(session.errorCount)}
                      </td>
                      <td data-label="Findings" class="number">
                        {session.findingCount > 0 ? (
                          <span class="tag bad">{formatCount(session.findingCount)}</span>
                        ) : (
                          '0'
                        )}
                      </td>
                      <td data-label="Recording">
                        {session.replayChunkCount > 0 ? <span class="tag">recorded</span> : '–'}
                      </td>
                      <td data-label="Last seen">
                        <Time iso={session.lastSeenAt} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            <p class="quiet">{counted(sessions.length, 'session')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

function NoSessions({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Notice title="No session matches" text="Widen the time, or clear a filter." />
  return (
    <Notice
      title="No sessions yet"
      text="A session appears here with its first identity, heartbeat, replay chunk, or span with the attribute session.id."
    />
  )
}

function parametersOf(query: URLSearchParams): Parameters<typeof listSessions>[0] {
  const texts = given(query, 'user', 'surface', 'hasFinding', 'hasReplay', 'cursor')
  const times = present({ $from: startOf(query.get('last')) })
  return { limit: PAGE_SIZE, ...texts, ...times } as Parameters<typeof listSessions>[0]
}
