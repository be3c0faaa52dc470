import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Chart, drawChart, LINE_COLORS, SIZE, THEMES } from './chart.ts'

/** Height of one line of a label, in pixels. */
const LABEL_LINE_HEIGHT = 15

const flat = (value: number) => ({ median: value, min: value, max: value })

function chartOf(lines: Record<string, [x: number, y: number][]>): Chart {
  return {
    title: 'Throughput',
    xTitle: 'processes',
    yTitle: 'spans/s',
    lines: Object.entries(lines).map(([name, points]) => ({
      name,
      points: points.map(([x, y]) => ({ x, y: flat(y) })),
    })),
  }
}

interface Text {
  readonly x: number
  readonly y: number
  readonly text: string
  readonly isLabel: boolean
}

/** The texts of a chart in drawing order. Labels of lines have an outline. */
function textsOf(svg: string): Text[] {
  return [...svg.matchAll(/<text([^>]*)>([^<]*)<\/text>/g)].map(([, attributes = '', text = '']) => {
    const [, x = '0', y = '0'] = /translate\(([\d.-]+) ([\d.-]+)\)/.exec(attributes) ?? []
    const [, offset = '0'] = / y="([\d.-]+)"/.exec(attributes) ?? []
    return { x: Number(x), y: Number(y) + Number(offset), text, isLabel: attributes.includes('paint-order') }
  })
}

const wordsOf = (svg: string) => textsOf(svg).map(({ text }) => text)
const labelsOf = (svg: string) => textsOf(svg).filter(({ isLabel }) => isLabel)

function linesOf(svg: string): Point[][] {
  return [...svg.matchAll(/<path d="M([^"]*)"[^>]*stroke-width="2"/g)].map(([, path = '']) =>
    path.split('L').map(point => {
      const [x = Number.NaN, y = Number.NaN] = point.split(' ').map(Number)
      return { x, y }
    }),
  )
}

const symbolsOf = (svg: string): Point[] =>
  [...svg.matchAll(/transform="matrix\(3\.5,0,0,3\.5,([^,]+),([^)]+)\)"/g)].map(([, x, y]) => ({
    x: Number(x),
    y: Number(y),
  }))

describe('drawChart', () => {
  it('draws larger values higher, and equal factors of x equally far apart', () => {
    const points: [number, number][] = [
      [1, 100],
      [2, 150],
      [4, 200],
      [8, 90],
    ]
    const [line = []] = linesOf(drawChart(chartOf({ product: points })))
    const [first, second, third, last] = line as [Point, Point, Point, Point]
    expect(second.x - first.x).toBeCloseTo(third.x - second.x, 0)
    expect(third.x - second.x).toBeCloseTo(last.x - third.x, 0)
    expect(first.y - second.y).toBeCloseTo(second.y - third.y, 0)
    expect(last.y).toBeGreaterThan(first.y)
  })

  it('labels the measured x values, and starts y at zero when all values are of one magnitude', () => {
    const drawn = wordsOf(
      drawChart(chartOf({ product: [pair([1, 40_000]), pair([20, 150_000]), pair([200, 250_000])] })),
    )
    expect(drawn).toEqual(expect.arrayContaining(['1', '20', '200', '0', '50K', '250K', 'spans/s']))
  })

  it('uses and names a logarithmic y axis when the magnitudes differ', () => {
    const drawn = wordsOf(drawChart(chartOf({ product: [pair([1, 4_000]), pair([200, 250_000])] })))
    expect(drawn).toEqual(expect.arrayContaining(['spans/s, logarithmic', '1K', '1M']))
    expect(drawn).not.toContain('0')
  })

  it('escapes the names of lines', () => {
    const svg = drawChart(chartOf({ 'a < b & "c"': [pair([1, 1])] }))
    expect(svg).toContain('a &lt; b &amp; &quot;c&quot;')
  })

  it('orders labels by the last value of their lines', () => {
    const long = 'a peer whose name takes two lines of a label'
    const svg = drawChart(chartOf({ [long]: [pair([1, 36_000])], 'the better one': [pair([1, 37_000])] }))
    const labels = labelsOf(svg)
    expect(labels.length).toBeGreaterThan(2)
    const topOf = (start: string) => labels.find(({ text }) => text.startsWith(start))?.y ?? Number.NaN
    expect(topOf('the better')).toBeLessThan(topOf('a peer'))
  })

  it('keeps everything inside the chart and no label on top of another, whatever was measured', () => {
    const value = fc.double({ min: 1e-3, max: 1e12, noNaN: true })
    const points = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 100_000 }), value), {
      minLength: 1,
      maxLength: 6,
      selector: ([x]) => x,
    })
    // The chart has room for eight names of three lines.
    const name = fc.array(fc.constantFrom('Fastify', 'job', 'per', 'request', 'x'.repeat(30)), {
      minLength: 1,
      maxLength: 3,
    })
    const lines = fc.array(fc.tuple(name, points), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(lines, drawn => {
        const named = drawn.map(
          ([words, points], i) => [`${i} ${words.join(' ')}`, points.toSorted(([a], [b]) => a - b)] as const,
        )
        const svg = drawChart(chartOf(Object.fromEntries(named) as Record<string, [number, number][]>))
        expect(svg).not.toMatch(/NaN|Infinity|undefined/)
        const symbols = symbolsOf(svg)
        expect(symbols).toHaveLength(drawn.reduce((sum, [, points]) => sum + points.length, 0))
        for (const { x, y } of [...symbols, ...textsOf(svg)]) {
          expect(y).toBeGreaterThanOrEqual(0)
          expect(y).toBeLessThanOrEqual(SIZE.height)
          expect(x).toBeLessThan(SIZE.width)
        }
        const tops = labelsOf(svg)
          .map(({ y }) => y)
          .sort((a, b) => a - b)
        for (const [i, top] of tops.slice(1).entries())
          expect(top - (tops[i] as number)).toBeGreaterThanOrEqual(LABEL_LINE_HEIGHT - 0.2)
      }),
    )
  })

  it('uses colours with enough contrast on a light and a dark background (WCAG 2.2, 1.4.11)', () => {
    for (const { background } of Object.values(THEMES))
      for (const color of LINE_COLORS) expect(contrast(color, background), color).toBeGreaterThanOrEqual(3)
  })
})

interface Point {
  readonly x: number
  readonly y: number
}

const pair = ([x, y]: readonly number[]): [number, number] => [x as number, y as number]

function contrast(one: string, other: string): number {
  const [a, b] = [luminance(one), luminance(other)]
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
}

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(at => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
