import { CustomChart, type CustomSeriesOption, LineChart, type LineSeriesOption } from 'echarts/charts'
import { GridComponent, type GridComponentOption, TitleComponent, type TitleComponentOption } from 'echarts/components'
import { type ComposeOption, format, init, use } from 'echarts/core'
import { LabelLayout } from 'echarts/features'
import { SVGRenderer } from 'echarts/renderers'
import type { Summary } from './statistics.ts'

/** Lines over a logarithmic x axis. Every x and y is above 0. */
export interface Chart {
  readonly title: string
  readonly xTitle: string
  readonly yTitle: string
  readonly lines: readonly ChartLine[]
}

/** One labelled line of a chart. */
export interface ChartLine {
  readonly name: string
  /** Sorted by ascending x. */
  readonly points: readonly ChartPoint[]
}

/** A measured value at one x, with the range of its rounds. */
export interface ChartPoint {
  readonly x: number
  readonly y: Summary
}

/** Size of every chart, in pixels. */
export const SIZE = { width: 880, height: 440 }
/**
 * Above this ratio of the largest to the smallest value, a linear axis would draw small values on top of each other.
 */
const LOG_FROM_RATIO = 20
const RANGE_CAP_PX = 3

/** Colours of the text, the grid and the background in the reader's light or dark theme. */
export const THEMES = {
  light: { text: '#1f2328', grid: '#d1d9e0', background: '#ffffff' },
  dark: { text: '#e6edf3', grid: '#30363d', background: '#0d1117' },
} as const

/** Readable on both backgrounds. Lines are also labelled, so that no reader depends on the hue. */
export const LINE_COLORS = [
  '#2b7de1',
  '#d0600a',
  '#2a9047',
  '#9a5fd6',
  '#d6404a',
  '#17879a',
  '#9c7210',
  '#7a828c',
] as const

/** Replaces the light colours in a dark theme: CSS overrides the attributes of SVG elements. */
const DARK_STYLE = [
  '<style>@media (prefers-color-scheme: dark) {',
  ...(['text', 'grid', 'background'] as const).flatMap(part =>
    ['fill', 'stroke'].map(name => `[${name}="${THEMES.light[part]}"] { ${name}: ${THEMES.dark[part]} }`),
  ),
  '}</style>',
].join('\n')

type ChartOption = ComposeOption<CustomSeriesOption | GridComponentOption | LineSeriesOption | TitleComponentOption>

use([CustomChart, GridComponent, LabelLayout, LineChart, SVGRenderer, TitleComponent])

/** Renders the chart as an SVG document that follows the light or dark theme of the reader. */
export function drawChart(chart: Chart): string {
  const rendered = init(null, null, { renderer: 'svg', ssr: true, ...SIZE })
  rendered.setOption(optionOf(chart))
  const svg = rendered.renderToSVGString({ useViewBox: true })
  rendered.dispose()
  const label = ` role="img" aria-label="${format.encodeHTML(chart.title)}"`
  return `${withoutHoverStyle(svg).replace(/^<svg([^>]*)>/, (_tag, attributes) => `<svg${attributes}${label}>\n${DARK_STYLE}`)}\n`
}

/** Removes what only a chart in a page needs: the styles of hovered elements, and the classes that refer to them. */
function withoutHoverStyle(svg: string): string {
  return svg.replaceAll(/ class="zr[^"]*"/g, '').replace(/<style ><!\[CDATA\[.*?\]\]>\s*<\/style>\n/s, '')
}

function optionOf({ title, xTitle, yTitle, lines }: Chart): ChartOption {
  const points = lines.flatMap(line => line.points)
  const values = points.flatMap(({ y }) => [y.min, y.max])
  const isLog = Math.max(...values) / Math.min(...values) > LOG_FROM_RATIO
  const { text, grid, background } = THEMES.light
  const xValues = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b)
  const [xMin = 1, xMax = 1] = [xValues[0], xValues.at(-1)]
  return {
    animation: false,
    backgroundColor: background,
    color: [...LINE_COLORS],
    textStyle: { color: text, fontFamily: 'system-ui, sans-serif', fontSize: 12 },
    title: {
      text: title,
      subtext: isLog ? `${yTitle}, logarithmic` : yTitle,
      textStyle: { color: text, fontSize: 15, fontWeight: 600 },
      subtextStyle: { color: text },
      left: 12,
      top: 10,
    },
    grid: { left: 68, top: 72, right: 210, bottom: 56 },
    xAxis: {
      type: 'log',
      logBase: 2,
      ...(xMin < xMax ? { min: xMin, max: xMax } : { min: xMin / 2, max: xMax * 2 }),
      name: `${xTitle}, logarithmic`,
      nameLocation: 'middle',
      nameGap: 30,
      nameTextStyle: { color: text },
      axisLine: { lineStyle: { color: grid }, onZero: false },
      axisTick: { customValues: xValues, lineStyle: { color: grid } },
      axisLabel: { customValues: xValues, formatter: compact, color: text },
      splitLine: { show: false },
    },
    yAxis: {
      type: isLog ? 'log' : 'value',
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { formatter: compact, color: text },
      splitLine: { lineStyle: { color: grid } },
    },
    series: lines.flatMap((line, i) => seriesOf(line, LINE_COLORS[i % LINE_COLORS.length] ?? text)),
  }
}

/** The medians as a line with its name at the end, and the range of every point as a bar with caps. */
function seriesOf({ name, points }: ChartLine, color: string): [LineSeriesOption, CustomSeriesOption] {
  const medians: LineSeriesOption = {
    type: 'line',
    data: points.map(({ x, y }) => [x, y.median]),
    symbol: 'circle',
    symbolSize: 7,
    lineStyle: { color, width: 2 },
    itemStyle: { color },
    endLabel: {
      show: true,
      formatter: () => name,
      color: THEMES.light.text,
      distance: 12,
      lineHeight: 15,
      width: 180,
      overflow: 'break',
      textBorderColor: THEMES.light.background,
      textBorderWidth: 3,
    },
    silent: true,
    emphasis: { disabled: true },
    labelLayout: { moveOverlap: 'shiftY' },
  }
  const ranges: CustomSeriesOption = {
    type: 'custom',
    silent: true,
    data: points.map(({ x, y }) => [x, y.min, y.max]),
    encode: { x: 0, y: [1, 2] },
    renderItem(_params, api) {
      const [x = 0, low = 0] = api.coord([api.value(0), api.value(1)])
      const [, high = 0] = api.coord([api.value(0), api.value(2)])
      const line = (x1: number, y1: number, x2: number, y2: number) => ({
        type: 'line' as const,
        shape: { x1, y1, x2, y2 },
        style: { stroke: color, lineWidth: 1 },
      })
      return {
        type: 'group',
        children: [line(x, low, x, high), ...[low, high].map(y => line(x - RANGE_CAP_PX, y, x + RANGE_CAP_PX, y))],
      }
    },
  }
  return [medians, ranges]
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 }).format
