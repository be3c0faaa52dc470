import type { MetricSeries } from '../api/generated/client.ts'
import { formatTime } from '../state/format.ts'
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
  return (
    <table class="list series">
      <caption class="hidden">Lines of the chart</caption>
      <thead>
        <tr>
          <th scope="col">Line</th>
          {['At pointer', 'Last', 'Least', 'Greatest', 'Gaps'].map(name => (
            <th key={name} scope="col" class="number">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {read.series.slice(0, DRAWN_MAX).map((line, i) => {
          const known = line.values.filter(value => value !== null)
          const cells = [
            ['At pointer', at === undefined ? '' : formatValue(line.values[at])],
            ['Last', formatValue(known.at(-1))],
            ['Least', formatValue(known.length > 0 ? Math.min(...known) : null)],
            ['Greatest', formatValue(known.length > 0 ? Math.max(...known) : null)],
            ['Gaps', String(line.values.length - known.length)],
          ] as const
          return (
            <tr key={i}>
              <th scope="row">
                <span class="swatch" data-hue={i % HUES} /> {nameOf(line)}
              </th>
              {cells.map(([name, text]) => (
                <td key={name} data-label={name} class="number">
                  {text}
                </td>
              ))}
            </tr>
          )
        })}
      </tbody>
    </table>
  )
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
