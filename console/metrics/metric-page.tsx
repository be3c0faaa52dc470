import { useState } from 'preact/hooks'
import { listMetrics, type Metric, type MetricSeries, readMetricSeries } from '../api/generated/client.ts'
import { counted, formatSeconds, formatTime } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf, given, place, present } from '../state/router.ts'
import { rangeKey, timesOf } from '../state/time-range.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { type FilterRules, PAIRS, validQuery } from '../ui/filter-rules.ts'
import { ChoiceFilter, Filters, TextFilter } from '../ui/filters.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { TimeFilter } from '../ui/time-filter.tsx'
import { aggregationOf, aggregationsOf, formatOf, labelsOf } from './aggregations.ts'
import { Chart, DRAWN_MAX, HUES } from './chart.tsx'
import { typeOf } from './metrics-page.tsx'
import { unitName } from './units.ts'

const STEPS = [
  ['', 'Chosen by the time'],
  ['10', '10 seconds'],
  ['60', 'A minute'],
  ['300', '5 minutes'],
  ['3600', 'An hour'],
  ['86400', 'A day'],
] as const
const RULES: FilterRules = { labels: PAIRS }
const LABELS_OF_ALL = ['service.name', 'surface.id']

/** A metric over time: its points by label, step and aggregation, all of which are in the address. */
export function MetricPage({ id: name }: { readonly id: string }) {
  const query = validQuery(place.value.query, RULES)
  const times = timesOf(query, { isBounded: true })
  const described = useLoad(`metric ${name} ${rangeKey(query)}`, async signal => {
    const { metrics } = await listMetrics({ prefix: name, limit: 1, ...times }, { signal })
    return metrics.find(metric => metric.name === name)
  })
  const loaded = useLoad(`series ${name} ${query}`, signal =>
    readMetricSeries({ name, ...parametersOf(query), ...times }, { signal }),
  )
  const metric = described.value
  return (
    <>
      <Title text={name} quiet="metric" />
      <p class="quiet trace-id">
        <a href={addressOf('metrics')}>Metrics</a> {metric?.description}
      </p>
      <Filters>
        <TimeFilter />
        {loaded.value && (
          <ChoiceFilter name="aggregation" label="Show" options={aggregationsOf(loaded.value.kind)} isOpen />
        )}
        <Grouping metric={metric} />
        <TextFilter
          name="labels"
          label="Only with labels"
          type="search"
          placeholder="http.route=/cart, …"
          rules={RULES}
        />
        <TextFilter name="service" label="Service" suggests="service" />
        <ChoiceFilter name="step" label="Step" options={STEPS} isOpen />
        {metric && metric.kinds.length > 1 && <Kinds metric={metric} />}
      </Filters>
      <Shown loaded={loaded} what="the series">
        {series => <Series series={series} />}
      </Shown>
    </>
  )
}

function Grouping({ metric }: { readonly metric: Metric | undefined }) {
  const { query } = place.value
  const known = [...(metric?.labels ?? []), ...LABELS_OF_ALL]
  const given = [query.get('by'), query.get('then')].filter(label => label !== null && label !== '') as string[]
  const options = [...new Set([...known, ...given])].map(label => [label, label] as const)
  return (
    <>
      <ChoiceFilter name="by" label="A line for each" options={[['', 'Nothing: one line'], ...options]} />
      {query.get('by') && <ChoiceFilter name="then" label="and each" options={[['', 'Nothing'], ...options]} />}
    </>
  )
}

function Kinds({ metric }: { readonly metric: Metric }) {
  const options = metric.kinds.map(
    kind => [`${kind.type} ${kind.unit}`, `${typeOf(kind)} in ${unitName(kind.unit) || 'no unit'}`] as const,
  )
  return <ChoiceFilter name="kind" label="Kind" options={[['', 'That of the newest point'], ...options]} />
}

function Series({ series: read }: { readonly series: MetricSeries }) {
  const [at, setAt] = useState<number>()
  const [isTableOpen, openTable] = useState(false)
  const { series, seriesCount, kind, stepSeconds } = read
  const isEmpty = series.every(({ values }) => values.every(value => value === null))
  if (isEmpty) {
    return <Notice title="Nothing is known of this time" text="No points match. Widen the time, or clear a filter." />
  }
  return (
    <>
      <p class="quiet">
        {typeOf(kind)}
        {kind.temporality && `, ${kind.temporality}`},{' '}
        {unitName(kind.unit) ? `in ${unitName(kind.unit)}` : 'without a unit'}, {read.aggregation}
        {read.quantile !== undefined && ` ${read.quantile}`} by steps of {formatSeconds(stepSeconds)}, from{' '}
        <Time iso={read.from} exact /> to <Time iso={read.to} exact />. Gaps are steps of which nothing is known.
      </p>
      {seriesCount > DRAWN_MAX && (
        <Notice
          title={`${counted(seriesCount, 'line')}: too many for one chart`}
          text={`The first ${DRAWN_MAX} in the order of their labels are drawn. Filter by a label to see others.`}
        />
      )}
      <Chart read={read} onPoint={setAt} />
      <SeriesTable read={read} at={at} />
      <details onToggle={event => openTable(event.currentTarget.open)}>
        <summary>Table of all values</summary>
        {isTableOpen && <ValuesTable read={read} />}
      </details>
    </>
  )
}

function parametersOf(query: URLSearchParams): Omit<Parameters<typeof readMetricSeries>[0], 'name'> {
  const { kind, step, service } = given(query, 'kind', 'step', 'service')
  const space = kind?.indexOf(' ') ?? -1
  const groupBy = [...new Set(Object.values(given(query, 'by', 'then')))]
  return present({
    service,
    ...(kind !== undefined && { $type: kind.slice(0, space), unit: kind.slice(space + 1) }),
    step: step === undefined ? undefined : Number(step),
    filter: labelsOf(query.get('labels')),
    groupBy: groupBy.length > 0 ? JSON.stringify(groupBy) : undefined,
    ...aggregationOf(query.get('aggregation')),
  }) as Omit<Parameters<typeof readMetricSeries>[0], 'name'>
}

type Line = MetricSeries['series'][number]

/** Returns a line in words: the values of its labels. */
function nameOf({ labels, bounds }: Line): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  const text = pairs.join(', ') || 'all'
  return bounds ? `${text} (${counted(bounds.length, 'bound')})` : text
}

/** The lines with their last, least and greatest values, and that of the step under the pointer. */
function SeriesTable({ read, at }: { readonly read: MetricSeries; readonly at: number | undefined }) {
  const { format, exact } = formatOf(read)
  const numbers = (head: string, ofLine: (line: Line) => number | null | undefined): Column<Line> => ({
    head,
    isNumber: true,
    title: line => exact(ofLine(line)),
    cell: line => format(ofLine(line)),
  })
  const columns: readonly Column<Line>[] = [
    {
      head: 'Line',
      cell: (line, i) => (
        <>
          <span class="swatch" data-hue={i % HUES} /> {nameOf(line)}
        </>
      ),
    },
    at === undefined
      ? { head: 'At pointer', isNumber: true, cell: () => '' }
      : numbers(`At ${timeOf(read, at)}`, ({ values }) => values[at]),
    numbers('Last', line => knownOf(line).at(-1)),
    numbers('Least', line => extremeOf(line, Math.min)),
    numbers('Greatest', line => extremeOf(line, Math.max)),
    { head: 'Gaps', isNumber: true, cell: line => String(line.values.length - knownOf(line).length) },
  ]
  return (
    <DataTable
      class="list series"
      caption="Lines of the chart"
      columns={columns}
      rows={read.series.slice(0, DRAWN_MAX)}
      keyOf={(_line, i) => i}
    />
  )
}

/** Returns when a step begins. */
function timeOf({ from, stepSeconds }: MetricSeries, step: number): string {
  return formatTime(new Date(Date.parse(from) + step * stepSeconds * 1_000).toISOString())
}

const knownOf = ({ values }: Line) => values.filter(value => value !== null)

function extremeOf(line: Line, pick: (...values: number[]) => number): number | null {
  const known = knownOf(line)
  return known.length > 0 ? pick(...known) : null
}

/** Every value of every line that is drawn, for those who do not see the chart. */
function ValuesTable({ read }: { readonly read: MetricSeries }) {
  const { exact } = formatOf(read)
  const lines = read.series.slice(0, DRAWN_MAX)
  const steps = lines[0]?.values.length ?? 0
  return (
    <section class="values" aria-label="Values by step">
      <table class="attributes">
        <thead>
          <tr>
            <th scope="col">Step</th>
            {lines.map((line, i) => (
              <th key={i} scope="col">
                {nameOf(line)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: steps }, (_, step) => (
            <tr key={step}>
              <th scope="row">{timeOf(read, step)}</th>
              {lines.map((line, i) => (
                <td key={i}>{exact(line.values[step])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
