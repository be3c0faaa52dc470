import type { MetricSeries } from '../api/generated/client.ts'
import { formatTime } from '../state/format.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { formatValue } from './aggregations.ts'
import { DRAWN_MAX, HUES } from './chart.tsx'

type Line = MetricSeries['series'][number]

/** Returns a line in words: the values of its labels. */
function nameOf({ labels, bounds }: Line): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  const text = pairs.join(', ') || 'all'
  return bounds ? `${text} (${bounds.length} bounds)` : text
}

/** The lines with their last, least and greatest values, and that of the step under the pointer. */
export function SeriesTable({ read, at }: { readonly read: MetricSeries; readonly at: number | undefined }) {
  const columns: readonly Column<Line>[] = [
    {
      head: 'Line',
      cell: (line, i) => (
        <>
          <span class="swatch" data-hue={i % HUES} /> {nameOf(line)}
        </>
      ),
    },
    { head: 'At pointer', isNumber: true, cell: ({ values }) => (at === undefined ? '' : formatValue(values[at])) },
    { head: 'Last', isNumber: true, cell: line => formatValue(knownOf(line).at(-1)) },
    { head: 'Least', isNumber: true, cell: line => formatValue(extremeOf(line, Math.min)) },
    { head: 'Greatest', isNumber: true, cell: line => formatValue(extremeOf(line, Math.max)) },
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

const knownOf = ({ values }: Line) => values.filter(value => value !== null)

function extremeOf(line: Line, pick: (...values: number[]) => number): number | null {
  const known = knownOf(line)
  return known.length > 0 ? pick(...known) : null
}

/** Every value of every line that is drawn, for those who do not see the chart. */
export function ValuesTable({ read }: { readonly read: MetricSeries }) {
  const lines = read.series.slice(0, DRAWN_MAX)
  const start = Date.parse(read.from)
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
              <th scope="row">{formatTime(new Date(start + step * read.stepSeconds * 1_000).toISOString())}</th>
              {lines.map((line, i) => (
                <td key={i}>{formatValue(line.values[step])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
