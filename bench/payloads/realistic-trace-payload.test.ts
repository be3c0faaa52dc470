import { fromBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { EVENT_SHARE, EXCEPTION_SHARE, realisticTracePayload } from './realistic-trace-payload.ts'
import { createRandom, createZipf } from './zipf.ts'

const spansOf = (body: Buffer) =>
  fromBinary(ExportTraceServiceRequestSchema, body).resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans),
  )

describe('realisticTracePayload', () => {
  it.each([1, 20, 200, 333])('has %i spans', count => {
    expect(spansOf(realisticTracePayload(count, 7))).toHaveLength(count)
  })

  it('has several services and hosts, the stated shares of exceptions and events, and values that repeat unevenly', () => {
    const bodies = Array.from({ length: 40 }, (_, i) => realisticTracePayload(200, i))
    const resources = bodies.flatMap(body => fromBinary(ExportTraceServiceRequestSchema, body).resourceSpans)
    const valuesOf = (key: string) =>
      resources.map(({ resource }) => resource?.attributes.find(attribute => attribute.key === key)?.value?.value.value)
    expect(new Set(valuesOf('service.name')).size).toBeGreaterThan(10)
    expect(new Set(valuesOf('host.name')).size).toBeGreaterThan(20)

    const spans = bodies.flatMap(spansOf)
    const share = (of: (name: string) => boolean) =>
      spans.filter(({ events }) => events.some(({ name }) => of(name))).length / spans.length
    expect(Math.abs(share(name => name === 'exception') - EXCEPTION_SHARE)).toBeLessThan(0.01)
    expect(Math.abs(share(name => name !== 'exception') - EVENT_SHARE)).toBeLessThan(0.01)

    const counts = [...Map.groupBy(spans, ({ name }) => name).values()]
      .map(({ length }) => length)
      .sort((a, b) => b - a)
    expect(counts.length).toBeGreaterThan(200)
    expect(counts[0]).toBeGreaterThan(10 * (counts[counts.length >> 1] as number))
  })

  it('gives the same spans for the same number, and others for another', () => {
    const names = (number: number) => spansOf(realisticTracePayload(50, number)).map(({ name }) => name)
    expect(names(3)).toEqual(names(3))
    expect(names(3)).not.toEqual(names(4))
  })
})

describe('createZipf', () => {
  it('draws the first rank most often, and each rank below the count', () => {
    const random = createRandom(1)
    const draw = createZipf(10, 1)
    const counts = new Array<number>(10).fill(0)
    for (let i = 0; i < 10_000; i++) {
      const rank = draw(random)
      counts[rank] = (counts[rank] ?? 0) + 1
    }
    // 1 / (1 + 1/2 + … + 1/10) = 0.341.
    expect(Math.abs((counts[0] as number) / 10_000 - 0.341)).toBeLessThan(0.02)
    expect((counts[0] as number) / (counts[9] as number)).toBeGreaterThan(6)
    expect(counts.every(count => count > 0)).toBe(true)
  })
})
