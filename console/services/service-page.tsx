import { type MetricSeries, readService, type ServiceDetails } from '../api/generated/client.ts'
import { Chart } from '../metrics/chart.tsx'
import { counted, formatSeconds } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place, present } from '../state/router.ts'
import { Bars } from '../ui/bars.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { startOf } from '../ui/filters.tsx'
import { Shown } from '../ui/states.tsx'
import { Fact, Facts, Time, Title } from '../ui/text.tsx'
import { formatChange, formatErrors, formatMs, formatRate, ratesColumns } from './rates.tsx'
import { ServiceFilters } from './services-page.tsx'

type Operation = ServiceDetails['operations'][number]
type Version = ServiceDetails['versions'][number]

/** A service over time, its operations and its versions. */
export function ServicePage({ id: name }: { readonly id: string }) {
  const { query } = place.value
  const loaded = useLoad(`service ${name} ${query}`, signal =>
    readService(
      { name, ...given(query, 'environment', 'surface'), ...present({ $from: startOf(query.get('last')) }) },
      { signal },
    ),
  )
  const filters = given(query, 'last', 'environment', 'surface') as Record<string, string>
  return (
    <>
      <Title text={name} quiet="service" />
      <p class="quiet trace-id">
        <a href={addressOf('services', filters)}>Services</a>
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
    </>
  )
}

function Details({ service }: { readonly service: ServiceDetails }) {
  const { steps, from, to, stepSeconds, operations, versions, dayBefore, durationMs } = service
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
          {formatRate(service.spans, seconds)} ({counted(service.spans, 'span')},{' '}
          {formatChange(service.spans, dayBefore.spans)})
        </Fact>
        <Fact name="Errors">
          {formatErrors(service)} ({counted(service.errors, 'span')}; the day before {formatErrors(dayBefore)})
        </Fact>
        {(['p50', 'p95', 'p99'] as const).map(quantile => (
          <Fact key={quantile} name={quantile}>
            {formatMs(durationMs?.[quantile])} ({formatChange(durationMs?.[quantile], dayBefore.durationMs?.[quantile])}
            )
          </Fact>
        ))}
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
