import {
  type Finding,
  listFindings,
  type MetricSeries,
  readService,
  readServiceMap,
  type ServiceDetails,
} from '../api/generated/client.ts'
import { messageOf, titleOf } from '../findings/title.tsx'
import { Chart } from '../metrics/chart.tsx'
import { counted, formatCount, formatSeconds } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place } from '../state/router.ts'
import { timesOf } from '../state/time-range.ts'
import { Bars } from '../ui/bars.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Shown } from '../ui/states.tsx'
import { Fact, Facts, Time, Title } from '../ui/text.tsx'
import { CallsTable } from './calls-table.tsx'
import { chosenSpans } from './links.ts'
import { formatChange, formatErrors, formatMs, formatRate, ratesColumns } from './rates.tsx'
import { ServiceFilters } from './services-page.tsx'

/** Findings that the page shows. */
const FINDINGS_SHOWN = 10

type Operation = ServiceDetails['operations'][number]
type Version = ServiceDetails['versions'][number]

/** A service over time, its operations and its versions. */
export function ServicePage({ id: name }: { readonly id: string }) {
  const { query } = place.value
  const loaded = useLoad(`service ${name} ${query}`, signal =>
    readService(
      { name, ...given(query, 'environment', 'surface'), ...timesOf(query, { isBounded: true }) },
      { signal },
    ),
  )
  const filters = chosenSpans()
  return (
    <>
      <Title text={name} quiet="service" />
      <p class="quiet trace-id">
        <a href={addressOf('services', filters)}>Services</a>
        {' · '}
        <a href={addressOf('services-map', { ...filters, service: name })}>Map</a>
        {' · '}
        <a href={addressOf('findings', { service: name })}>Findings</a>
        {' · '}
        <a href={addressOf('traces', { service: name })}>Traces</a>
        {' · '}
        <a href={addressOf('logs', { service: name })}>Logs</a>
      </p>
      <ServiceFilters />
      <Shown loaded={loaded} what="the service">
        {service => <Details service={service} />}
      </Shown>
      <Dependencies name={name} />
      <RecentFindings name={name} />
    </>
  )
}

/** The calls from and to a service. */
function Dependencies({ name }: { readonly name: string }) {
  const { query } = place.value
  const loaded = useLoad(`calls of ${name} ${query}`, signal =>
    readServiceMap(
      { service: name, ...given(query, 'environment', 'surface'), ...timesOf(query, { isBounded: true }) },
      { signal },
    ),
  )
  return (
    <section>
      <h2>Calls from and to it</h2>
      <Shown loaded={loaded} what="the calls of the service">
        {({ edges, from, to }) => <CallsTable edges={edges} seconds={(Date.parse(to) - Date.parse(from)) / 1_000} />}
      </Shown>
    </section>
  )
}

/** The findings of a service that were received last. */
function RecentFindings({ name }: { readonly name: string }) {
  const loaded = useLoad(`findings of ${name}`, signal =>
    listFindings({ service: name, status: 'open', limit: FINDINGS_SHOWN }, { signal }),
  )
  return (
    <section>
      <h2>Open findings</h2>
      <Shown loaded={loaded} what="the findings of the service">
        {({ findings }) => (
          <DataTable
            caption="Open findings, the one received last first"
            columns={FINDING_COLUMNS}
            rows={findings}
            keyOf={({ id }) => id}
            empty={<p class="quiet">None.</p>}
          />
        )}
      </Shown>
    </section>
  )
}

const FINDING_COLUMNS: readonly Column<Finding>[] = [
  {
    head: 'Finding',
    cell: finding => (
      <>
        <a data-row href={addressOf(`findings/${finding.id}`)}>
          <span class="type">{titleOf(finding)}</span>
        </a>
        <span class="message">{messageOf(finding)}</span>
      </>
    ),
  },
  { head: 'Occurrences', isNumber: true, cell: ({ occurrenceCount }) => formatCount(occurrenceCount) },
  { head: 'Last seen', cell: ({ lastSeenAt }) => <Time iso={lastSeenAt} /> },
]

function Details({ service }: { readonly service: ServiceDetails }) {
  const { steps, from, to, stepSeconds, operations, versions, dayBefore, lastRelease, durationMs } = service
  const seconds = (Date.parse(to) - Date.parse(from)) / 1_000
  return (
    <>
      <p class="quiet">
        {service.counts === 'entries' ? 'Spans of servers and consumers' : 'All spans'} that ended from{' '}
        <Time iso={from} exact /> to <Time iso={to} exact />, by steps of {formatSeconds(stepSeconds)}. Changes are
        those since the day before.
      </p>
      <Facts>
        <Fact name="Rate">
          {formatRate(service.spans, seconds)} ({counted(service.spans, 'span')}
          {changeNote(service.spans, dayBefore.spans)})
        </Fact>
        <Fact name="Errors">
          {formatErrors(service)} ({counted(service.errors, 'span')}
          {dayBefore.spans > 0 && `; the day before ${formatErrors(dayBefore)}`}
          {lastRelease !== null && `; before ${lastRelease.version} ${formatErrors(lastRelease.before)}`})
        </Fact>
        {(['p50', 'p95', 'p99'] as const).map(quantile => (
          <Fact key={quantile} name={quantile}>
            {formatMs(durationMs?.[quantile])}
            {changeNote(durationMs?.[quantile], dayBefore.durationMs?.[quantile])}
          </Fact>
        ))}
        {lastRelease !== null && (
          <Fact name="Last release">
            {lastRelease.version}, <Time iso={lastRelease.at} />
            {changeNote(durationMs?.p95, lastRelease.before.durationMs?.p95, 'p95 ')}
          </Fact>
        )}
      </Facts>
      <Bars counts={steps.spans} from={from} bucketSeconds={stepSeconds} noun="span" />
      {service.errors > 0 && <Bars counts={steps.errors} from={from} bucketSeconds={stepSeconds} noun="error" />}
      <h2>p95 of durations</h2>
      <Chart read={asSeries(service)} onPoint={() => undefined} />
      <h2>Operations</h2>
      <DataTable
        caption="Operations, those first that took most time together"
        columns={operationColumns(service.name, seconds)}
        rows={operations}
        keyOf={({ name, kind }) => `${kind} ${name}`}
      />
      <h2>Versions</h2>
      <DataTable
        caption="Versions, the one with the latest span first"
        columns={versionColumns(seconds)}
        rows={versions}
        keyOf={({ version, environment }) => `${environment} ${version}`}
      />
    </>
  )
}

/** Returns by how much a value differs from one before, after a comma, or nothing if there was none. */
function changeNote(now: number | undefined, before: number | undefined, of = ''): string {
  return before === undefined || before === 0 ? '' : `, ${of}${formatChange(now, before)}`
}

/** The 95th percentiles as the chart of metrics draws a line. */
function asSeries({ from, to, stepSeconds, steps }: ServiceDetails): MetricSeries {
  return {
    ...{ name: 'p95', kind: { type: 'gauge', unit: 'ms' }, otherKinds: [], aggregation: 'last' },
    ...{ from, to, stepSeconds, seriesCount: 1, truncated: false },
    series: [{ labels: {}, values: steps.p95Ms }],
  }
}

function operationColumns(service: string, seconds: number): readonly Column<Operation>[] {
  return [
    {
      head: 'Operation',
      cell: ({ name }) => (
        <a data-row href={addressOf('traces', { service, name })}>
          <span class="type">{name || '(no name)'}</span>
        </a>
      ),
    },
    { head: 'Kind', cell: ({ kind }) => kind },
    ...ratesColumns<Operation>(seconds),
    {
      head: 'Slowest',
      isNumber: true,
      cell: ({ slowest }) => <a href={addressOf(`traces/${slowest.traceId}`)}>{formatMs(slowest.durationMs)}</a>,
    },
  ]
}

function versionColumns(seconds: number): readonly Column<Version>[] {
  return [
    { head: 'Version', cell: ({ version }) => version || '(none)' },
    { head: 'Environment', cell: ({ environment }) => environment || '–' },
    ...ratesColumns<Version>(seconds),
    { head: 'First', cell: ({ firstAt }) => <Time iso={firstAt} /> },
    { head: 'Last', cell: ({ lastAt }) => <Time iso={lastAt} /> },
  ]
}
