import { listVersions, type VersionHealth } from '../api/generated/client.ts'
import { formatErrors } from '../services/rates.tsx'
import { formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { timesOf } from '../state/time-range.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Filters, SurfaceFilter, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'

const SHARE = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 2 })
const ADOPTION = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 0 })

/** How the versions do that spans and exceptions of a time name. */
export function Versions() {
  const { query } = place.value
  const loaded = useLoad(`versions ${query}`, signal =>
    listVersions(
      { ...given(query, 'service', 'environment', 'surface'), ...timesOf(query, { isBounded: true }) },
      { signal },
    ),
  )
  return (
    <section>
      <h2>Versions in use</h2>
      <Filters>
        <TimeFilter />
        <TextFilter name="service" label="Service" placeholder="all services" suggests="service" />
        <TextFilter name="environment" label="Environment" placeholder="production" maxLength={256} />
        <SurfaceFilter />
      </Filters>
      <Shown loaded={loaded} what="versions">
        {({ versions, isCut }) => (
          <>
            <DataTable
              caption="Versions, the one with the latest span first"
              columns={columnsOf(versions)}
              rows={versions}
              keyOf={({ service, version }) => JSON.stringify([service, version])}
              empty={<Notice title="No version in this time" text="Versions are those of service.version." />}
            />
            {isCut && <p class="quiet">There are more: choose a service or a shorter time.</p>}
          </>
        )}
      </Shown>
    </section>
  )
}

function columnsOf(versions: readonly VersionHealth[]): readonly Column<VersionHealth>[] {
  const totals = new Map<string, { sessions: number; spans: number }>()
  for (const { service, sessions, spans } of versions) {
    const known = totals.get(service) ?? { sessions: 0, spans: 0 }
    totals.set(service, { sessions: known.sessions + sessions.total, spans: known.spans + spans })
  }
  const adoption = ({ service, sessions, spans }: VersionHealth) => {
    const of = totals.get(service)
    if (of === undefined || of.spans + of.sessions === 0) return '–'
    return ADOPTION.format(of.sessions > 0 ? sessions.total / of.sessions : spans / of.spans)
  }
  return [
    {
      head: 'Version',
      cell: ({ service, version }) => (
        <>
          <a data-row href={addressOf(`services/${encodeURIComponent(service)}`)}>
            {version || '(none)'}
          </a>
          <span class="message">{service || '(no name)'}</span>
        </>
      ),
    },
    {
      head: 'Adoption',
      isNumber: true,
      title: ({ sessions }) =>
        sessions.total > 0 ? 'Share of the sessions of the service' : 'Share of the spans of the service',
      cell: adoption,
    },
    { head: 'Sessions', isNumber: true, cell: ({ sessions }) => formatCount(sessions.total) },
    freeColumn('Crash-free sessions', 'sessions', 'crashed'),
    freeColumn('Error-free sessions', 'sessions', 'errored'),
    freeColumn('Crash-free people', 'people', 'crashed'),
    {
      head: 'Span errors',
      isNumber: true,
      title: ({ spans, errors }) => `${errors.toLocaleString()} of ${spans.toLocaleString()} spans`,
      cell: formatErrors,
    },
    {
      head: 'New findings',
      isNumber: true,
      cell: ({ service, findings }) =>
        findings.new === 0 ? '0' : <a href={addressOf('findings', { service })}>{formatCount(findings.new)}</a>,
    },
    {
      head: 'Regressed',
      isNumber: true,
      cell: ({ service, findings }) =>
        findings.regressed === 0 ? (
          '0'
        ) : (
          <a href={addressOf('findings', { service, status: 'regressed' })}>{formatCount(findings.regressed)}</a>
        ),
    },
    { head: 'Last span', cell: ({ lastAt }) => (lastAt === null ? '–' : <Time iso={lastAt} />) },
  ]
}

function freeColumn(head: string, of: 'sessions' | 'people', without: 'crashed' | 'errored'): Column<VersionHealth> {
  return {
    head,
    isNumber: true,
    title: row => `${row[of][without].toLocaleString()} of ${row[of].total.toLocaleString()} ${of} ${without}`,
    cell: row => (row[of].total === 0 ? '–' : SHARE.format(1 - row[of][without] / row[of].total)),
  }
}
