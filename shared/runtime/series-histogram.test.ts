import fc from 'fast-check'
import { Histogram, Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { SeriesHistogram } from './series-histogram.ts'

const buckets = [0.001, 0.5, 1, 10]
const configuration = { name: 'waits_seconds', help: 'Waits.', buckets }

it('shows what a histogram of prom-client shows', async () => {
  const labels = fc.record({ kind: fc.constantFrom('a', 'b'), quote: fc.constantFrom('"', '\\', 'é\n') })
  // Sums of powers of two are exact, in whatever order they are added.
  const value = fc.oneof(
    fc.constantFrom(...buckets),
    fc.nat(20_000).map(count => count / 1024),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(labels, value)), async observed => {
      const [expected, actual] = [new Registry(), new Registry()]
      for (const registry of [expected, actual]) registry.setDefaultLabels({ process: 'ingest' })
      const theirs = new Histogram({ ...configuration, labelNames: ['kind', 'quote'], registers: [expected] })
      const series = new SeriesHistogram(configuration, actual)
      const known = new Map<string, ReturnType<typeof series.series>>()
      for (const [labels, value] of observed) {
        theirs.observe(labels, value)
        const key = JSON.stringify(labels)
        if (!known.has(key)) known.set(key, series.series(labels))
        known.get(key)?.observe(value)
      }
      expect(lines(await actual.metrics())).toEqual(lines(await expected.metrics()))
    }),
  )
})

/** Returns the lines of a text of metrics, with the labels of each in alphabetical order. */
function lines(text: string): string[] {
  return text.split('\n').map(line => line.replace(/\{(.*)\}/, (_, labels: string) => sorted(labels)))
}

const sorted = (labels: string) => `{${[...labels.matchAll(/\w+="(?:\\.|[^"])*"/g)].map(String).sort().join(',')}}`
