import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  BACKGROUNDS,
  CHART_HEIGHT,
  CHART_WIDTH,
  type Chart,
  drawChart,
  LABEL_LINE_HEIGHT,
  LINE_COLORS,
} from './chart.ts'

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

const attributes = (svg: string, name: string) =>
  [...svg.matchAll(new RegExp(` ${name}="([^"]*)"`, 'g'))].map(match => match[1] as string)
const texts = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(match => match[1] as string)
const labelTops = (svg: string) => [...svg.matchAll(/class="label"[^>]* y="([^"]+)"/g)].map(match => Number(match[1]))

function polylines(svg: string): { x: number; y: number }[][] {
  return attributes(svg, 'points').map(points =>
    points.split(' ').map(point => {
      const [x = Number.NaN, y = Number.NaN] = point.split(',').map(Number)
      return { x, y }
    }),
  )
}

describe('a chart', () => {
  it('places more above less, and equal factors of x equally far apart', () => {
    const [line = []] = polylines(
      drawChart(
        chartOf({
          product: [
            [1, 100],
            [2, 150],
            [4, 200],
            [8, 90],
          ].map(pair),
        }),
      ),
    )
    const [first, second, third, last] = line as [Place, Place, Place, Place]
    expect(second.x - first.x).toBeCloseTo(third.x - second.x, 0)
    expect(third.x - second.x).toBeCloseTo(last.x - third.x, 0)
    expect(first.y - second.y).toBeCloseTo(second.y - third.y, 0)
    expect(last.y).toBeGreaterThan(first.y)
  })

  it('marks the measured x, and begins at zero while the values are of one size', () => {
    const drawn = texts(drawChart(chartOf({ product: [pair([1, 40_000]), pair([20, 150_000]), pair([200, 250_000])] })))
    expect(drawn).toEqual(expect.arrayContaining(['1', '20', '200', '0', '50K', '250K', 'spans/s']))
  })

  it('says so when y is logarithmic, which it is when values are of different sizes', () => {
    const drawn = texts(drawChart(chartOf({ product: [pair([1, 4_000]), pair([200, 250_000])] })))
    expect(drawn).toEqual(expect.arrayContaining(['spans/s, logarithmic', '2K', '500K']))
    expect(drawn).not.toContain('0')
  })

  it('escapes what names contain', () => {
    const svg = drawChart(chartOf({ 'a < b & "c"': [pair([1, 1])] }))
    expect(svg).toContain('a &lt; b &amp; &quot;c&quot;')
  })

  it('labels lines in the order in which they end', () => {
    const long = 'a peer whose name takes two lines of a label'
    const svg = drawChart(chartOf({ [long]: [pair([1, 36_000])], 'the better one': [pair([1, 37_000])] }))
    const labels = [...svg.matchAll(/class="label"[^>]* y="([^"]+)">([^<]*)/g)]
    const topOf = (start: string) => Number(labels.find(([, , text]) => text?.startsWith(start))?.[1])
    expect(topOf('the better')).toBeLessThan(topOf('a peer'))
  })

  it('keeps everything inside and no label on another, whatever is measured', () => {
    const value = fc.double({ min: 1e-3, max: 1e12, noNaN: true })
    const points = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 100_000 }), value), {
      minLength: 1,
      maxLength: 6,
      selector: ([x]) => x,
    })
    const name = fc.array(fc.constantFrom('Fastify', 'job', 'per', 'request', 'x'.repeat(30)), {
      minLength: 1,
      maxLength: 6,
    })
    const lines = fc.array(fc.tuple(name, points), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(lines, drawn => {
        const named = drawn.map(([words, points], i) => [`${i} ${words.join(' ')}`, points] as const)
        const svg = drawChart(chartOf(Object.fromEntries(named) as Record<string, [number, number][]>))
        expect(svg).not.toMatch(/NaN|Infinity|undefined/)
        for (const y of [...attributes(svg, 'y'), ...attributes(svg, 'cy')].map(Number)) {
          expect(y).toBeGreaterThanOrEqual(0)
          expect(y).toBeLessThanOrEqual(CHART_HEIGHT)
        }
        for (const x of attributes(svg, 'cx').map(Number)) expect(x).toBeLessThan(CHART_WIDTH)
        const tops = labelTops(svg).sort((a, b) => a - b)
        for (const [i, top] of tops.slice(1).entries())
          expect(top - (tops[i] as number)).toBeGreaterThanOrEqual(LABEL_LINE_HEIGHT - 0.2)
      }),
    )
  })

  it('has colours that stand out from a light and a dark background (WCAG 2.2, 1.4.11)', () => {
    for (const background of Object.values(BACKGROUNDS))
      for (const color of LINE_COLORS) expect(contrast(color, background), color).toBeGreaterThanOrEqual(3)
  })
})

type Place = { x: number; y: number }

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
