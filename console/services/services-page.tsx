import type { ComponentChildren } from 'preact'
import { listServices, type Service } from '../api/generated/client.ts'
import { NothingFound } from '../onboarding/nothing-found.tsx'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { timesOf } from '../state/time-range.ts'
import { Sparkline } from '../ui/bars.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Filters, Pages, SurfaceFilter, TextFilter } from '../ui/filters.tsx'
import { Shown } from '../ui/states.tsx'
import { Title } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'
import { addressOfService, chosenSpans } from './links.ts'
import { formatChange, formatErrors, formatMs, ratesColumns } from './rates.tsx'

const PAGE_SIZE = 100

/** The list of services, those with most spans first. */
export function ServicesPage() {
  const { query } = place.value
  const loaded = useLoad(`services ${query}`, signal =>
    listServices(
      {
        limit: PAGE_SIZE,
        ...given(query, 'environment', 'surface', 'cursor'),
        ...timesOf(query, { isBounded: true }),
      },
      { signal },
    ),
  )
  return (
    <>
      <Title text="Services" />
      <p class="quiet trace-id">
        <a href={addressOf('services-map', chosenSpans())}>Map of the calls between services</a>
      </p>
      <ServiceFilters />
      <Shown loaded={loaded} what="services">
        {({ services, from, to, nextCursor }) => (
          <>
            <DataTable
              caption="Services, those with most spans first"
              columns={columnsOf((Date.parse(to) - Date.parse(from)) / 1_000)}
              rows={services}
              keyOf={({ name }) => name}
              empty={<NothingFound kind="traces" noun="service" />}
            />
            <p class="quiet">
              {counted(services.length, 'service')} on this page. Spans of servers and consumers count, or all spans of
              a service without such spans.
            </p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

/** The filters of the pages of services. */
export function ServiceFilters({ children }: { readonly children?: ComponentChildren }) {
  return (
    <Filters>
      <TimeFilter />
      <TextFilter name="environment" label="Environment" placeholder="production" maxLength={256} />
      <SurfaceFilter />
      {children}
    </Filters>
  )
}

function columnsOf(seconds: number): readonly Column<Service>[] {
  return [
    {
      head: 'Service',
      cell: ({ name }) => (
        <a data-row href={addressOfService(name)}>
          <span class="type">{name || '(no name)'}</span>
        </a>
      ),
    },
    { head: 'Spans', isPlain: true, cell: ({ steps }) => <Sparkline counts={steps.spans} /> },
    ...ratesColumns<Service>(seconds),
    {
      head: 'Rate since yesterday',
      isNumber: true,
      cell: ({ spans, dayBefore }) => formatChange(spans, dayBefore.spans),
    },
    {
      head: 'p95 since yesterday',
      isNumber: true,
      cell: ({ durationMs, dayBefore }) => formatChange(durationMs?.p95, dayBefore.durationMs?.p95),
    },
    {
      head: 'p95 since release',
      isNumber: true,
      title: ({ lastRelease }) =>
        lastRelease === null
          ? 'No release in the last seven days'
          : `Before ${lastRelease.version}: ${formatMs(lastRelease.before.durationMs?.p95)}, ${formatErrors(lastRelease.before)} errors`,
      cell: ({ durationMs, lastRelease }) => formatChange(durationMs?.p95, lastRelease?.before.durationMs?.p95),
    },
  ]
}
