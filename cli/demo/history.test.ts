import { describe, expect, it } from 'vitest'
import { makeHistory } from './history.ts'
import { exportsOf } from './otlp.ts'
import { createRandom } from './random.ts'
import { loadRecorded } from './recorded.ts'
import { Telemetry } from './telemetry.ts'
import { totalOf } from './truth.ts'

const NOW = Date.parse('2026-11-27T21:00:00Z')
const recorded = loadRecorded()

function shop(seed: string, nowMs: number) {
  const telemetry = new Telemetry(createRandom(seed, String(nowMs)))
  const visitors = makeHistory(telemetry, recorded, nowMs, { hours: 2, sessions: 12 })
  const bodies = (['traces', 'logs', 'metrics'] as const).map(signal => [...exportsOf(signal, telemetry[signal], 500)])
  return { telemetry, visitors, bodies, text: JSON.stringify([bodies, visitors]) }
}

describe('the history of the shop', () => {
  const { telemetry, bodies, text } = shop('1', NOW)

  it('is the same for the same seed and time', () => {
    expect(shop('1', NOW).text).toBe(text)
    expect(shop('2', NOW).text).not.toBe(text)
  })

  it('has the same shape at another time, with ids of its own', () => {
    const later = shop('1', NOW + 60_000)
    expect(later.telemetry.truth.spans).toEqual(telemetry.truth.spans)
    const idsOf = (of: string) => of.match(/(?<="(?:spanId|traceId|sessionId)":")[^"]+/g) ?? []
    const known = new Set(idsOf(text))
    expect(idsOf(later.text).filter(id => known.has(id))).toEqual([])
  })

  it('counts what it sends', () => {
    const count = (body: object[], list: string) => JSON.stringify(body).split(`"${list}":`).length - 1
    const [traces = [], logs = [], metrics = []] = bodies
    expect(count(traces, 'startTimeUnixNano')).toBe(totalOf(telemetry.truth, 'spans'))
    expect(count(logs, 'observedTimeUnixNano')).toBe(totalOf(telemetry.truth, 'logs'))
    const points = count(metrics, 'asInt') + count(metrics, 'bucketCounts')
    expect(points).toBe(totalOf(telemetry.truth, 'points'))
  })

  it('is over, and has failures in each language', () => {
    const times = (text.match(/(?<="startTimeUnixNano":")\d+/g) ?? []).map(nanos => Number(nanos) / 1_000_000)
    expect(Math.max(...times)).toBeLessThanOrEqual(NOW)
    for (const type of [
      'gateway UpstreamError',
      'orders java.sql.SQLTransientConnectionException',
      'payment payment.errors.ChargeFailed',
      'inventory runtime.boundsError',
      'pricing System.InvalidOperationException',
      'shop-web URIError',
    ]) {
      expect(telemetry.truth.occurrences[type], type).toBeGreaterThan(0)
    }
  })
})
