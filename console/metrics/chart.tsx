import { useLayoutEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { SECOND_MS } from '../../schemas/units.ts'
import type { MetricSeries } from '../api/generated/client.ts'
import { zoomTo } from '../state/choose-range.ts'
import { counted } from '../state/format.ts'
import { isDark } from '../state/theme.ts'
import { formatOf } from './aggregations.ts'

/** Number of colours of lines. Lines beyond them are dashed, and all are in the table below the chart. */
export const HUES = 8
/** Most lines that are drawn. */
export const DRAWN_MAX = 24
const HEIGHT = 300
const DASHES = [[], [6, 4], [2, 3]] as const

/**
 * Lines over time, in which a drag chooses the time range of the page. A step of which nothing is known is a gap: no line is drawn
 * across it.
 */
export function Chart(props: { readonly read: MetricSeries; readonly onPoint: (step: number | undefined) => void }) {
  const { read, onPoint } = props
  const box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const element = box.current
    if (element === null) return
    const plot = new uPlot(optionsOf(read, element, onPoint), dataOf(read), element)
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [read, isDark.value])
  const drawn = read.series.slice(0, DRAWN_MAX)
  const values = drawn.flatMap(line => line.values.filter(value => value !== null))
  const { format } = formatOf(read)
  const range = `${format(Math.min(...values))} to ${format(Math.max(...values))}`
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={`${counted(drawn.length, 'line')} with values from ${range}`} />
    </figure>
  )
}

function dataOf({ series, from, stepSeconds }: MetricSeries): uPlot.AlignedData {
  const start = Date.parse(from) / 1_000
  const steps = series[0]?.values.length ?? 0
  const times = Array.from({ length: steps }, (_, step) => start + step * stepSeconds)
  return [times, ...series.slice(0, DRAWN_MAX).map(({ values }) => values)]
}

function optionsOf(
  read: MetricSeries,
  element: HTMLElement,
  onPoint: (step: number | undefined) => void,
): uPlot.Options {
  const stroke = colourOf(element, 'var(--quiet)')
  const grid = { stroke: colourOf(element, 'var(--line)'), width: 1 }
  const axis = { stroke, grid, ticks: grid, font: AXIS_FONT }
  const { formatAll, increments } = formatOf(read)
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false }, y: false },
    scales: { y: { range: (_, least, greatest) => uPlot.rangeNum(Math.min(least, 0), greatest, 0.1, true) } },
    axes: [
      axis,
      {
        ...axis,
        size: (_, labels) => widthOf(labels),
        ...(increments && {
          incrs: increments,
          splits: (_, _axis, least, greatest, step) => marksOf(least, greatest, step),
        }),
        values: (_, ticks) => formatAll(ticks),
      },
    ],
    series: [
      {},
      ...read.series.slice(0, DRAWN_MAX).map((_, i) => ({
        stroke: colourOf(element, 'var(--hue)', i % HUES),
        width: 2,
        dash: [...(DASHES[Math.floor(i / HUES) % DASHES.length] ?? [])],
        spanGaps: false,
      })),
    ],
    hooks: {
      setCursor: [plot => onPoint(plot.cursor.idx ?? undefined)],
      setSelect: [zoomToSelection],
    },
  }
}

/** Shows the time that was dragged over. */
function zoomToSelection(plot: uPlot): void {
  const { left, width } = plot.select
  if (width === 0) return
  const msAt = (px: number) => plot.posToVal(px, 'x') * SECOND_MS
  zoomTo(msAt(left), msAt(left + width))
}

const AXIS_FONT = '12px system-ui, sans-serif'
/** Between the labels of an axis and its line, with the marks. */
const AXIS_GAP = 18

/** Returns the width that an axis needs for its labels. */
function widthOf(labels: readonly string[] | null): number {
  const context = document.createElement('canvas').getContext('2d')
  if (context === null || labels === null) return 70
  context.font = AXIS_FONT
  return Math.ceil(Math.max(0, ...labels.map(label => context.measureText(label).width))) + AXIS_GAP
}

/** Returns the multiples of a distance between two values. */
function marksOf(least: number, greatest: number, distance: number): number[] {
  const first = Math.ceil(least / distance)
  return Array.from({ length: Math.floor(greatest / distance) - first + 1 }, (_, i) => (first + i) * distance)
}

/** Returns a colour of the theme as the canvas needs it, which knows no variables. */
function colourOf(parent: HTMLElement, value: string, hue?: number): string {
  const probe = document.createElement('span')
  if (hue !== undefined) probe.dataset.hue = String(hue)
  probe.style.color = value
  parent.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
