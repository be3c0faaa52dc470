import { listMetrics, type MetricKind } from '../api/generated/client.ts'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given, present } from '../state/parameters.ts'
import { addressOf, place } from '../state/router.ts'
import { ChoiceFilter, Filters, Pages, PERIOD_OPTIONS, startOf, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'

const PAGE_SIZE = 50
const LABELS_SHOWN = 6

/** The list of metrics by name. */
export function MetricsPage() {
  const { query } = place.value
  const loaded = useLoad(query.toString(), signal =>
    listMetrics(
      {
        limit: PAGE_SIZE,
        ...given(query, 'prefix', 'service', 'cursor'),
        ...present({ $from: startOf(query.get('last')) }),
      },
      { signal },
    ),
  )
  return (
    <>
      <Title text="Metrics" />
      <Filters>
        <TextFilter name="prefix" label="Name begins with" type="search" placeholder="http." />
        <TextFilter name="service" label="Service" />
        <ChoiceFilter name="last" label="Points of" options={[['', 'Last hour'], ...PERIOD_OPTIONS.slice(1)]} />
      </Filters>
      <Shown loaded={loaded} what="metrics">
        {({ metrics, nextCursor }) => (
          <>
            {metrics.length === 0 && <Empty isFiltered={query.size > 0} />}
            {metrics.length > 0 && (
              <table class="list">
                <caption class="hidden">Metrics by name</caption>
                <thead>
                  <tr>
                    <th scope="col">Metric</th>
                    <th scope="col">Type</th>
                    <th scope="col">Unit</th>
                    <th scope="col">Labels</th>
                    <th scope="col">Last point</th>
                  </tr>
                </thead>
                <tbody>
                  {metrics.map(({ name, description, kinds, labels, lastPointAt }) => (
                    <tr key={name}>
                      <th scope="row">
                        <a data-row href={addressOf(`metrics/${encodeURIComponent(name)}`, linked(query))}>
                          <span class="type">{name || '(no name)'}</span>
                          <span class="message">{description}</span>
                        </a>
                      </th>
                      <td data-label="Type">{distinct(kinds, typeOf)}</td>
                      <td data-label="Unit">{distinct(kinds, ({ unit }) => unit || '–')}</td>
                      <td data-label="Labels" class="labels">
                        {labels.slice(0, LABELS_SHOWN).join(', ') || '–'}
                        {labels.length > LABELS_SHOWN && ` and ${labels.length - LABELS_SHOWN} more`}
                      </td>
                      <td data-label="Last point">
                        <Time iso={lastPointAt} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            <p class="quiet">{counted(metrics.length, 'metric')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

function Empty({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Notice title="No metric matches" text="Widen the time, or clear a filter." />
  return <Notice title="No metrics in this hour" text="A metric appears here a moment after its first point arrives." />
}

/** The time and the service of the list are those of the metric too. */
function linked(query: URLSearchParams): Record<string, string> {
  return given(query, 'service', 'last') as Record<string, string>
}

/** Returns the type of a metric in words: a sum that only grows is a counter. */
export function typeOf({ type, isMonotonic }: MetricKind): string {
  if (type === 'sum' && isMonotonic) return 'counter'
  return type.replaceAll('_', ' ')
}

function distinct(kinds: readonly MetricKind[], textOf: (kind: MetricKind) => string): string {
  return [...new Set(kinds.map(textOf))].join(', ')
}
