import { useState } from 'preact/hooks'
import { type Finding, listFindings } from '../api/generated/client.ts'
import { NoData } from '../onboarding/no-data.tsx'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place, present } from '../state/router.ts'
import { Sparkline } from '../ui/bars.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { choiceOf, type FilterRules, validQuery } from '../ui/filter-rules.ts'
import { ChoiceFilter, Filters, Pages, PERIOD_OPTIONS, SurfaceFilter, startOf, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { MergeChosen } from './merges.tsx'
import { Status } from './status.tsx'
import { messageOf, Place, titleOf } from './title.tsx'

const PAGE_SIZE = 50
const PERIOD_NAMES: Readonly<Record<string, string>> = Object.fromEntries(PERIOD_OPTIONS)
const STATUSES = [
  ['', 'Any status'],
  ['open', 'Open'],
  ['regressed', 'Regressed'],
  ['resolved', 'Resolved'],
  ['ignored', 'Ignored'],
] as const

const RULES: FilterRules = { status: choiceOf(STATUSES) }

/** The list of findings, last received first. */
export function FindingsPage() {
  const query = validQuery(place.value.query, RULES)
  const [chosen, setChosen] = useState<readonly string[]>([])
  const loaded = useLoad(`findings ${query}`, signal =>
    listFindings(
      {
        limit: PAGE_SIZE,
        occurrences: 'true',
        times: 'occurred',
        ...given(query, 'q', 'service', 'surface', 'status', 'cursor'),
        ...present({ $from: startOf(query.get('last')) }),
      } as Parameters<typeof listFindings>[0],
      { signal },
    ),
  )
  return (
    <>
      <Title text="Findings" />
      <Filters>
        <TextFilter name="q" label="Type or message" type="search" placeholder="cart" maxLength={200} />
        <TextFilter name="service" label="Service" />
        <SurfaceFilter />
        <ChoiceFilter name="status" label="Status" options={STATUSES} />
        <ChoiceFilter name="last" label="Received" options={[['', 'Any time'], ...PERIOD_OPTIONS]} />
      </Filters>
      <Shown loaded={loaded} what="findings">
        {({ findings, nextCursor, occurrences }) => (
          <>
            <MergeChosen
              ids={findings.map(({ id }) => id).filter(id => chosen.includes(id))}
              merged={() => {
                setChosen([])
                loaded.again()
              }}
            />
            <DataTable
              caption="Findings, last received first"
              columns={[...columnsOf(query.get('last'), occurrences), choiceColumn(chosen, setChosen)]}
              rows={findings}
              keyOf={({ id }) => id}
              empty={<NoFindings isFiltered={query.size > 0} />}
            />
            <p class="quiet">{counted(findings.length, 'finding')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

type Counts = Awaited<ReturnType<typeof listFindings>>['occurrences']

function columnsOf(last: string | null, occurrences: Counts): readonly Column<Finding>[] {
  return [
    {
      head: 'Finding',
      cell: finding => (
        <a data-row href={addressOf(`findings/${finding.id}`)}>
          <span class="type">{titleOf(finding)}</span>
          <span class="message">{messageOf(finding).split('\n', 1)[0]}</span>
          <Place finding={finding} />
        </a>
      ),
    },
    { head: 'Status', isPlain: true, cell: finding => <Status finding={finding} since={startOf(last)} /> },
    {
      head: PERIOD_NAMES[last ?? ''] ?? 'Last 24 hours',
      isPlain: true,
      cell: (_finding, i) => <Sparkline counts={occurrences?.counts[i] ?? []} />,
    },
    { head: 'Service', cell: ({ serviceName }) => serviceName || '–' },
    { head: 'Occurrences', isNumber: true, cell: ({ occurrenceCount }) => occurrenceCount.toLocaleString() },
    { head: 'Last', cell: ({ lastSeenAt }) => <Time iso={lastSeenAt} /> },
    { head: 'First', cell: ({ firstSeenAt }) => <Time iso={firstSeenAt} /> },
  ]
}

/** A column in which findings are chosen. */
function choiceColumn(chosen: readonly string[], choose: (ids: readonly string[]) => void): Column<Finding> {
  return {
    head: 'Merge',
    cell: ({ id, type, message }) => (
      <input
        type="checkbox"
        aria-label={`Choose ${type}: ${message.slice(0, 80)}`}
        checked={chosen.includes(id)}
        onChange={event => choose(event.currentTarget.checked ? [...chosen, id] : chosen.filter(other => other !== id))}
      />
    ),
  }
}

function NoFindings({ isFiltered }: { readonly isFiltered: boolean }) {
  return (
    <NoData kind="findings">
      {isFiltered ? (
        <Notice title="No finding matches" text="Widen the time, or clear a filter." />
      ) : (
        <Notice title="No findings yet" text="No span and no log record that has arrived has an error." />
      )}
    </NoData>
  )
}
