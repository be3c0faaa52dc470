import { listMetrics, type Metric, type MetricKind } from '../api/generated/client.ts'
import { NothingFound } from '../onboarding/nothing-found.tsx'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { timesOf } from '../state/time-range.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Filters, Pages, TextFilter } from '../ui/filters.tsx'
import { Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'
import { unitName } from './units.ts'

const PAGE_SIZE = 50
const LABELS_SHOWN = 6

const COLUMNS: readonly Column<Metric>[] = [
  {
    head: 'Metric',
    cell: ({ name, description }) => (
      <a data-row href={addressOf(`metrics/${encodeURIComponent(name)}`, linked(place.value.query))}>
        <span class="type">{name || '(no name)'}</span>
        <span class="message">{description}</span>
      </a>
    ),
  },
  { head: 'Type', cell: ({ kinds }) => distinct(kinds, typeOf) },
  { head: 'Unit', cell: ({ kinds }) => distinct(kinds, ({ unit }) => unitName(unit) || '–') },
  {
    head: 'Labels',
    class: 'labels',
    cell: ({ labels }) => (
      <>
        {labels.slice(0, LABELS_SHOWN).join(', ') || '–'}
        {labels.length > LABELS_SHOWN && ` and ${labels.length - LABELS_SHOWN} more`}
      </>
    ),
  },
  { head: 'Last point', cell: ({ lastPointAt }) => <Time iso={lastPointAt} /> },
]

/** The list of metrics by name. */
export function MetricsPage() {
  const { query } = place.value
  const loaded = useLoad(`metrics ${query}`, signal =>
    listMetrics(
      {
        limit: PAGE_SIZE,
        ...given(query, 'prefix', 'service', 'cursor'),
        ...timesOf(query, { isBounded: true }),
      },
      { signal },
    ),
  )
  return (
    <>
      <Title text="Metrics" />
      <Filters>
        <TextFilter name="prefix" label="Name begins with" type="search" placeholder="http." />
        <TextFilter name="service" label="Service" suggests="service" />
        <TimeFilter label="Points of" />
      </Filters>
      <Shown loaded={loaded} what="metrics">
        {({ metrics, nextCursor }) => (
          <>
            <DataTable
              caption="Metrics by name"
              columns={COLUMNS}
              rows={metrics}
              keyOf={({ name }) => name}
              empty={<NothingFound kind="metrics" noun="metric" />}
            />
            <p class="quiet">{counted(metrics.length, 'metric')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

/** The service of the list is that of the metric too. */
function linked(query: URLSearchParams): Record<string, string> {
  return given(query, 'service') as Record<string, string>
}

/** Returns the type of a metric in words: a sum that only grows is a counter. */
export function typeOf({ type, isMonotonic }: MetricKind): string {
  if (type === 'sum' && isMonotonic) return 'counter'
  return type.replaceAll('_', ' ')
}

function distinct(kinds: readonly MetricKind[], textOf: (kind: MetricKind) => string): string {
  return [...new Set(kinds.map(textOf))].join(', ')
}
