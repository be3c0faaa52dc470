import { useEffect, useState } from 'preact/hooks'
import { type Finding, listFindings } from '../api/generated/client.ts'
import { NothingFound } from '../onboarding/nothing-found.tsx'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { describeRange, rangeOf, timesOf } from '../state/time-range.ts'
import { Sparkline } from '../ui/bars.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { choiceOf, type FilterRules, validQuery } from '../ui/filter-rules.ts'
import { ChoiceFilter, Filters, Pages, SurfaceFilter, TextFilter } from '../ui/filters.tsx'
import { Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'
import { MergeChosen } from './merges.tsx'
import { rememberListed } from './neighbours.tsx'
import { Status } from './status.tsx'
import { messageOf, Place, titleOf } from './title.tsx'

const PAGE_SIZE = 50
const STATUSES = [
  ['', 'Open or regressed'],
  ['open', 'Open'],
  ['regressed', 'Regressed'],
  ['resolved', 'Resolved'],
  ['ignored', 'Ignored'],
  ['any', 'Any status'],
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
        ...given(query, 'q', 'service', 'surface', 'cursor'),
        ...statusOf(query),
        ...timesOf(query),
      } as Parameters<typeof listFindings>[0],
      { signal },
    ),
  )
  return (
    <>
      <Title text="Findings" />
      <Filters>
        <TextFilter name="q" label="Type or message" type="search" placeholder="cart" maxLength={200} />
        <TextFilter name="service" label="Service" suggests="service" />
        <SurfaceFilter />
        <ChoiceFilter name="status" label="Status" options={STATUSES} />
        <TimeFilter label="Received" />
      </Filters>
      <Shown loaded={loaded} what="findings">
        {({ findings, nextCursor, occurrences }) => (
          <>
            <Listed ids={findings.map(({ id }) => id)} />
            <MergeChosen
              ids={findings.map(({ id }) => id).filter(id => chosen.includes(id))}
              merged={() => {
                setChosen([])
                loaded.again()
              }}
            />
            <DataTable
              caption="Findings, last received first"
              columns={[...columnsOf(query, occurrences), choiceColumn(chosen, setChosen)]}
              rows={findings}
              keyOf={({ id }) => id}
              empty={<NothingFound kind="findings" noun="finding" />}
            />
            <p class="quiet">{counted(findings.length, 'finding')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

function Listed({ ids }: { readonly ids: readonly string[] }) {
  useEffect(() => rememberListed(ids), [ids.join()])
  return null
}

/** Findings on which work remains are listed unless another status is chosen. */
function statusOf(query: URLSearchParams): { readonly status?: string } {
  const status = query.get('status') || 'unresolved'
  return status === 'any' ? {} : { status }
}

type Counts = Awaited<ReturnType<typeof listFindings>>['occurrences']

function columnsOf(query: URLSearchParams, occurrences: Counts): readonly Column<Finding>[] {
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
    { head: 'Status', isPlain: true, cell: finding => <Status finding={finding} since={timesOf(query).$from} /> },
    {
      head: describeRange(rangeOf(query)),
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
