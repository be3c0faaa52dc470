import { type DeadLetter, listDeadLetters } from '../api/generated/client.ts'
import { counted, formatBytes } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { ChoiceFilter, Filters, Pages, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'
import { LetterActions, type LetterSelection } from './letter-actions.tsx'
import { sentenceOf } from './reasons.ts'

const PAGE_SIZE = 50
const STATES = [
  ['', 'Any state'],
  ['dead', 'Not stored'],
  ['replayed', 'Replayed'],
] as const
/** Tag of each state. */
export const STATE_TAGS: Readonly<Record<DeadLetter['state'], string>> = {
  dead: 'tag bad',
  replaying: 'tag doubt',
  replayed: 'tag good',
}

/** The list of dead letters, the last request first, and what can be done with all that match. */
export function DeadLetters({ nameOf }: { readonly nameOf: (surfaceId: string) => string }) {
  const { query } = place.value
  const filter = given(query, 'state', 'queue', 'reason')
  const loaded = useLoad(`letters ${query}`, signal =>
    listDeadLetters(
      { limit: PAGE_SIZE, ...filter, ...given(query, 'cursor') } as Parameters<typeof listDeadLetters>[0],
      { signal },
    ),
  )
  const isFiltered = Object.keys(filter).length > 0
  return (
    <section>
      <h2>Dead letters</h2>
      <Filters>
        <ChoiceFilter name="state" label="State" options={STATES} />
        <TextFilter name="queue" label="Queue" placeholder="traces" />
        <TextFilter name="reason" label="Reason" type="search" />
      </Filters>
      <Shown loaded={loaded} what="dead letters">
        {({ deadLetters: letters, nextCursor }) => (
          <>
            <DataTable
              caption="Dead letters, newest first"
              columns={columnsOf(nameOf)}
              rows={letters}
              keyOf={({ id }) => id}
              empty={<None isFiltered={isFiltered} />}
            />
            {letters.length > 0 && (
              <>
                <p class="quiet">{counted(letters.length, 'dead letter')} on this page</p>
                <LetterActions
                  selection={{ filter: { ...filter, state: 'dead' } as LetterSelection['filter'] }}
                  what={isFiltered ? 'all that match and are not stored' : 'all that are not stored'}
                  onDone={loaded.again}
                />
              </>
            )}
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </section>
  )
}

function None({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Notice title="No dead letter matches" text="Clear a filter." />
  return <Notice title="No dead letters" text="Every request that was accepted is stored, or will be." />
}

function columnsOf(nameOf: (surfaceId: string) => string): readonly Column<DeadLetter>[] {
  return [
    {
      head: 'Reason',
      cell: ({ id, reason, surfaceId }) => (
        <a data-row href={addressOf(`pipeline/${id}`)}>
          <span class="type">{reason}</span>
          {sentenceOf(reason) && <span class="place">{sentenceOf(reason)}</span>}
          <span class="message">
            {nameOf(surfaceId)}, {id}
          </span>
        </a>
      ),
    },
    { head: 'State', isPlain: true, cell: ({ state }) => <span class={STATE_TAGS[state]}>{state}</span> },
    { head: 'Queue', cell: ({ queue }) => queue },
    { head: 'Size', isNumber: true, cell: ({ bodyBytes }) => formatBytes(bodyBytes) },
    { head: 'Received', cell: ({ receivedAt }) => <Time iso={receivedAt} /> },
  ]
}
