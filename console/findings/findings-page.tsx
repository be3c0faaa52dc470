import { listFindings } from '../api/generated/client.ts'
import { counted } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { given, present } from '../state/parameters.ts'
import { addressOf, place } from '../state/router.ts'
import { ChoiceFilter, Filters, Pages, PERIOD_OPTIONS, SurfaceFilter, startOf, TextFilter } from '../ui/filters.tsx'
import { Sparkline } from '../ui/sparkline.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { Status } from './status.tsx'

const PAGE_SIZE = 50
const PERIOD_NAMES: Readonly<Record<string, string>> = Object.fromEntries(PERIOD_OPTIONS)
const STATUSES = [
  ['', 'Any status'],
  ['open', 'Open'],
  ['regressed', 'Regressed'],
  ['resolved', 'Resolved'],
  ['ignored', 'Ignored'],
] as const

/** The list of findings, last received first. */
export function FindingsPage() {
  const { query } = place.value
  const loaded = useLoad(query.toString(), signal =>
    listFindings(
      {
        limit: PAGE_SIZE,
        occurrences: 'true',
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
        <TextFilter name="q" label="Type or message" type="search" placeholder="cart" />
        <TextFilter name="service" label="Service" />
        <SurfaceFilter />
        <ChoiceFilter name="status" label="Status" options={STATUSES} />
        <ChoiceFilter name="last" label="Received" options={[['', 'Any time'], ...PERIOD_OPTIONS]} />
      </Filters>
      <Shown loaded={loaded} what="findings">
        {({ findings, nextCursor, occurrences }) => (
          <>
            {findings.length === 0 ? (
              <NoFindings isFiltered={query.size > 0} />
            ) : (
              <table class="list">
                <caption class="hidden">Findings, last received first</caption>
                <thead>
                  <tr>
                    <th scope="col">Finding</th>
                    <th scope="col">Status</th>
                    <th scope="col">{PERIOD_NAMES[query.get('last') ?? ''] ?? 'Last 24 hours'}</th>
                    <th scope="col">Service</th>
                    <th scope="col" class="number">
                      Occurrences
                    </th>
                    <th scope="col">Last</th>
                    <th scope="col">First</th>
                  </tr>
                </thead>
                <tbody>
                  {findings.map((finding, i) => (
                    <tr key={finding.id}>
                      <th scope="row">
                        <a data-row href={addressOf(`findings/${finding.id}`)}>
                          <span class="type">{finding.type || 'Exception'}</span>
                          <span class="message">{finding.message}</span>
                        </a>
                      </th>
                      <td>
                        <Status finding={finding} since={startOf(query.get('last'))} />
                      </td>
                      <td>
                        <Sparkline counts={occurrences?.counts[i] ?? []} />
                      </td>
                      <td data-label="Service">{finding.serviceName || '–'}</td>
                      <td data-label="Occurrences" class="number">
                        {finding.occurrenceCount.toLocaleString()}
                      </td>
                      <td data-label="Last">
                        <Time iso={finding.lastSeenAt} />
                      </td>
                      <td data-label="First">
                        <Time iso={finding.firstSeenAt} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            <p class="quiet">{counted(findings.length, 'finding')} on this page</p>
            <Pages nextCursor={nextCursor} />
          </>
        )}
      </Shown>
    </>
  )
}

function NoFindings({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Notice title="No finding matches" text="Widen the time, or clear a filter." />
  return (
    <Notice
      title="No findings yet"
      text="A finding appears here when a span or a log record with an exception arrives. The address and the key to send them with are those that a surface of this workspace has."
    />
  )
}
