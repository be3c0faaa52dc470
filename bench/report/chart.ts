import type { Summary } from './statistics.ts'

/** Lines over a logarithmic x axis. All x and y are above 0. */
export interface Chart {
  readonly title: string
  readonly xTitle: string
  readonly yTitle: string
  readonly lines: readonly ChartLine[]
}

export interface ChartLine {
  readonly name: string
  /** By growing x. */
  readonly points: readonly ChartPoint[]
}

export interface ChartPoint {
  readonly x: number
  readonly y: Summary
}

export const CHART_WIDTH = 880
export const CHART_HEIGHT = 440
const PLOT = { left: 68, top: 64, right: 620, bottom: CHART_HEIGHT - 60 }
const LABEL_LEFT = PLOT.right + 34
const LABEL_CHARACTERS = 32
export const LABEL_LINE_HEIGHT = 15
/** From this ratio of the largest to the smallest value on, lines near zero could not be told apart. */
const LOG_FROM_RATIO = 20

/** All readable on both backgrounds, without relying on hue alone: lines are labelled where they end. */
export const BACKGROUNDS = { light: '#ffffff', dark: '#0d1117' } as const
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

/** The chart as an SVG document, in the colours of the reader's theme. */
export function drawChart(chart: Chart): string {
  const points = chart.lines.flatMap(line => line.points)
  const x = xScale(points.map(point => point.x))
  const y = yScale(points.flatMap(point => [point.y.min, point.y.max]))
  const labels = placeLabels(chart.lines, y.at)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${CHART_WIDTH} ${CHART_HEIGHT}" role="img" aria-label="${escaped(chart.title)}">`,
    STYLE,
    `<rect class="background" width="${CHART_WIDTH}" height="${CHART_HEIGHT}" rx="6"/>`,
    `<text class="title" x="16" y="28">${escaped(chart.title)}</text>`,
    `<text x="16" y="48">${escaped(chart.yTitle)}${y.isLog ? ', logarithmic' : ''}</text>`,
    ...drawAxes(x, y, chart.xTitle),
    ...chart.lines.flatMap((line, i) => drawLine(line, labels[i] as Label, LINE_COLORS[i % LINE_COLORS.length], x, y)),
    '</svg>\n',
  ].join('\n')
}

const STYLE = `<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.background { fill: ${BACKGROUNDS.light} }
.grid { stroke: #d1d9e0 }
.line { fill: none; stroke-width: 2 }
.range { stroke-width: 1 }
.leader { stroke-width: 1; stroke-dasharray: 1 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .background { fill: ${BACKGROUNDS.dark} }
  .grid { stroke: #30363d }
}
</style>`

interface Scale {
  readonly ticks: readonly number[]
  readonly isLog: boolean
  at(value: number): number
}

/** Its ticks are the values themselves: few, and the only ones that were measured. */
function xScale(values: readonly number[]): Scale {
  const ticks = [...new Set(values)].sort((a, b) => a - b)
  const [low = 1, high = 1] = [ticks[0], ticks.at(-1)]
  const middle = (PLOT.left + PLOT.right) / 2
  const perDoubling = (PLOT.right - PLOT.left) / Math.log2(high / low)
  return { ticks, isLog: true, at: x => (high > low ? PLOT.left + Math.log2(x / low) * perDoubling : middle) }
}

function yScale(values: readonly number[]): Scale {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const isLog = high / low > LOG_FROM_RATIO
  const ticks = isLog ? logTicks(low, high) : linearTicks(high)
  const [bottom = 0, top = 1] = [ticks[0], ticks.at(-1)]
  const share = (value: number) =>
    isLog ? Math.log(value / bottom) / Math.log(top / bottom) : (value - bottom) / (top - bottom)
  return { ticks, isLog, at: value => PLOT.bottom - share(value) * (PLOT.bottom - PLOT.top) }
}

/** From 0 to the first multiple of 1, 2, 2.5 or 5 × 10ⁿ that is not below `high`, in at most six steps. */
function linearTicks(high: number): number[] {
  const power = 10 ** Math.floor(Math.log10(high / 5))
  const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(candidate => high / candidate <= 6) ?? high
  return Array.from({ length: Math.ceil(high / step) + 1 }, (_, i) => i * step)
}

function logTicks(low: number, high: number): number[] {
  const factors = high / low <= 1_000 ? [1, 2, 5] : [1]
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))]
  const all = Array.from({ length: last - first + 1 }, (_, i) =>
    factors.map(factor => factor * 10 ** (first + i)),
  ).flat()
  const from = all.findLastIndex(tick => tick <= low)
  const to = all.findIndex(tick => tick >= high)
  return all.slice(Math.max(0, from), to < 0 ? undefined : to + 1)
}

function drawAxes(x: Scale, y: Scale, xTitle: string): string[] {
  const horizontal = y.ticks.flatMap(tick => [
    `<line class="grid" x1="${PLOT.left}" x2="${PLOT.right}" y1="${px(y.at(tick))}" y2="${px(y.at(tick))}"/>`,
    `<text x="${PLOT.left - 8}" y="${px(y.at(tick) + 4)}" text-anchor="end">${compact(tick)}</text>`,
  ])
  const vertical = x.ticks.flatMap(tick => [
    `<line class="grid" x1="${px(x.at(tick))}" x2="${px(x.at(tick))}" y1="${PLOT.bottom}" y2="${PLOT.bottom + 5}"/>`,
    `<text x="${px(x.at(tick))}" y="${PLOT.bottom + 20}" text-anchor="middle">${compact(tick)}</text>`,
  ])
  const middle = (PLOT.left + PLOT.right) / 2
  const title = `<text x="${middle}" y="${PLOT.bottom + 44}" text-anchor="middle">${escaped(xTitle)}, logarithmic</text>`
  return [...horizontal, ...vertical, title]
}

/** The medians as a line, the range of each as a bar, and a dotted leader from its end to its label. */
function drawLine({ points }: ChartLine, label: Label, color: string | undefined, x: Scale, y: Scale): string[] {
  const medians = points.map(point => [px(x.at(point.x)), px(y.at(point.y.median))] as const)
  const [endX, endY] = medians.at(-1) ?? [PLOT.left, PLOT.bottom]
  const middle = px(label.top + (label.lines.length * LABEL_LINE_HEIGHT) / 2)
  return [
    `<g stroke="${color}" fill="${color}">`,
    ...points.map(point => {
      const at = px(x.at(point.x))
      return `<line class="range" x1="${at}" x2="${at}" y1="${px(y.at(point.y.min))}" y2="${px(y.at(point.y.max))}"/>`
    }),
    `<polyline class="line" points="${medians.map(at => at.join(',')).join(' ')}"/>`,
    ...medians.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3.5"/>`),
    `<line class="leader" x1="${endX}" y1="${endY}" x2="${LABEL_LEFT - 10}" y2="${middle}"/>`,
    `<circle cx="${LABEL_LEFT - 10}" cy="${middle}" r="3.5"/>`,
    '</g>',
    ...label.lines.map(
      (text, i) =>
        `<text class="label" x="${LABEL_LEFT}" y="${px(label.top + (i + 0.75) * LABEL_LINE_HEIGHT)}">${escaped(text)}</text>`,
    ),
  ]
}

interface Label {
  readonly lines: readonly string[]
  /** Where its line ends. */
  readonly anchor: number
  top: number
}

/** Beside the end of its line, or as near to it as the others leave room. */
function placeLabels(lines: readonly ChartLine[], at: Scale['at']): Label[] {
  const height = (label: Label) => label.lines.length * LABEL_LINE_HEIGHT + 3
  const labels = lines.map(({ name, points }): Label => {
    const lines = wrapped(name)
    const anchor = at(points.at(-1)?.y.median ?? 1)
    return { lines, anchor, top: anchor - (lines.length * LABEL_LINE_HEIGHT) / 2 }
  })
  const downwards = labels.toSorted((a, b) => a.anchor - b.anchor)
  let free = 0
  for (const label of downwards) {
    label.top = Math.max(label.top, free)
    free = label.top + height(label)
  }
  let limit = CHART_HEIGHT
  for (const label of downwards.toReversed()) {
    label.top = Math.min(label.top, limit - height(label))
    limit = label.top
  }
  return labels
}

function wrapped(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < LABEL_CHARACTERS) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

const px = (value: number) => Math.round(value * 10) / 10

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 }).format

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
])
const escaped = (text: string) => text.replace(/[&<>"]/g, character => ENTITIES.get(character) ?? character)
