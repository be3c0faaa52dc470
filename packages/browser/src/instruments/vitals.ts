import { type Metric, onCLS, onFCP, onINP, onLCP, onTTFB } from 'web-vitals'
import { clockOrigin, keyValues, unixNano } from '../signals/otlp.ts'
import type { Telemetry } from '../signals/telemetry.ts'

/** Bounds of the histograms: milliseconds, and the layout shift without a unit. */
const BOUNDS_MS = [50, 100, 200, 300, 500, 800, 1_000, 1_800, 2_500, 4_000, 6_000, 10_000]
const BOUNDS_CLS = [0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1]
const DELTA = 1

/** Reports the web vitals of the page as histograms, so that percentiles of many pages are right. It cannot be undone. */
export function watchVitals(telemetry: Telemetry, isStopped: () => boolean): void {
  const report = (metric: Metric) => {
    if (!isStopped()) telemetry.add('metrics', histogramOf(metric, keyValues(attributesOf(telemetry, metric))))
  }
  for (const watch of [onCLS, onFCP, onINP, onLCP, onTTFB]) watch(report)
}

function attributesOf(telemetry: Telemetry, { rating, navigationType }: Metric) {
  // Ids in the path would make a series of each page.
  const { 'session.id': _, ...common } = telemetry.common()
  const path = location.pathname.replace(/\/(?:\d+|[0-9a-f-]{16,})(?=\/|$)/gi, '/{id}')
  return { ...common, 'url.path': path, 'browser.web_vital.rating': rating, 'browser.navigation.type': navigationType }
}

function histogramOf({ name, value }: Metric, attributes: readonly object[]): Readonly<Record<string, unknown>> {
  const explicitBounds = name === 'CLS' ? BOUNDS_CLS : BOUNDS_MS
  const bucket = explicitBounds.findIndex(bound => value <= bound)
  const at = bucket < 0 ? explicitBounds.length : bucket
  const bucketCounts = Array.from({ length: explicitBounds.length + 1 }, (_, i) => (i === at ? '1' : '0'))
  const now = performance.now()
  const originMs = clockOrigin()
  const times = { startTimeUnixNano: unixNano(Math.max(0, now - 1), originMs), timeUnixNano: unixNano(now, originMs) }
  const point = { ...times, attributes, count: '1', sum: value, min: value, max: value, explicitBounds, bucketCounts }
  return {
    name: `browser.web_vital.${name.toLowerCase()}`,
    unit: name === 'CLS' ? '1' : 'ms',
    histogram: { aggregationTemporality: DELTA, dataPoints: [point] },
  }
}
