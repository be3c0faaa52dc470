import { type ClickHouseClient, isClickHouseCode } from '../clickhouse/client.ts'
import { type SamplePart, type SampleSeriesRow, selectSamples } from '../clickhouse/queries/metrics/select-samples.ts'
import { derivedMetricOf } from '../clickhouse/queries/services/derived-metrics.ts'
import { selectDerivedSamples } from '../clickhouse/queries/services/select-derived.ts'
import { METRICS_RANGE_DAYS_MAX } from '../schemas/http/metrics.ts'
import { DAY_MS } from '../schemas/units.ts'
import { NAME_LABEL, type SelectorExpression } from './expression.ts'
import { LOOKBACK_MS, leadOf, type SampledSeries } from './over-time.ts'
import { PromqlError, TOO_MANY_SAMPLES } from './promql-error.ts'
import { labelsText, type TimeGrid } from './vector.ts'

/** Most series that a selector may select. */
const SELECTED_SERIES_MAX = 5_000
/** Most selectors of a query. */
const SELECTORS_MAX = 10
/** Segments of time with samples that a query keeps in memory: about 120 bytes each. */
const SEGMENTS_MAX = 200_000

/** Code of ClickHouse for an expression that RE2 does not accept. */
const CANNOT_COMPILE_REGEXP = 427
/** Bounds within the range of nanoseconds in 64 bits. */
const MAX_MS = Date.UTC(2200, 0, 1)

/** Stored metrics that a name of Prometheus may mean. The parts of a distribution have names of their own. */
export function storedNames(name: string): readonly { readonly name: string; readonly part: SamplePart }[] {
  const parts = (['bucket', 'count', 'sum'] as const).filter(part => name.endsWith(`_${part}`))
  return [{ name, part: 'value' }, ...parts.map(part => ({ name: name.slice(0, -part.length - 1), part }))]
}

/** Source of the samples of a query. */
interface SampleSource {
  readonly clickhouse: ClickHouseClient
  readonly workspaceId: string
  readonly grid: TimeGrid
  readonly signal: AbortSignal
}

/** Reads the samples of all selectors of a query. */
export async function loadSamples(
  source: SampleSource,
  selectors: readonly SelectorExpression[],
): Promise<ReadonlyMap<string, readonly SampledSeries[]>> {
  checkSelectors(selectors, source.grid)
  const loaded = new Map<string, readonly SampledSeries[]>()
  let segments = 0
  for (const selector of selectors) {
    const key = selectorKey(selector)
    if (loaded.has(key)) continue
    const series = await loadSelector(source, selector)
    segments += series.reduce((sum, each) => sum + each.segments.length, 0)
    if (segments > SEGMENTS_MAX) {
      throw new PromqlError(TOO_MANY_SAMPLES, 'execution')
    }
    loaded.set(key, series)
  }
  return loaded
}

/** Refuses selectors that cannot be read, before any of them is. */
export function checkSelectors(
  selectors: readonly SelectorExpression[],
  grid: Pick<TimeGrid, 'stepMs' | 'count'>,
): void {
  if (selectors.length > SELECTORS_MAX) throw new PromqlError(`must have at most ${SELECTORS_MAX} selectors`)
  for (const selector of selectors) {
    nameOf(selector)
    const lengthMs = (grid.count - 1) * grid.stepMs + (selector.rangeMs ?? LOOKBACK_MS)
    if (lengthMs > METRICS_RANGE_DAYS_MAX * DAY_MS) {
      throw new PromqlError(`must read at most ${METRICS_RANGE_DAYS_MAX} days of points: request a shorter range`)
    }
  }
}

/** Returns a text that is the same for equal selectors only. */
export function selectorKey({ matchers, offsetMs, rangeMs }: SelectorExpression): string {
  return JSON.stringify([matchers.map(({ label, operator, value }) => [label, operator, value]), offsetMs, rangeMs])
}

async function loadSelector(
  { clickhouse, workspaceId, grid, signal }: SampleSource,
  selector: SelectorExpression,
): Promise<readonly SampledSeries[]> {
  const name = nameOf(selector)
  const lengthMs = selector.rangeMs ?? LOOKBACK_MS
  const windows = { grid, offsetMs: selector.offsetMs, lengthMs }
  const endMs = grid.startMs + (grid.count - 1) * grid.stepMs - selector.offsetMs
  const startMs = grid.startMs - selector.offsetMs - lengthMs
  if (startMs < 0 || endMs > MAX_MS) return []
  const nanos = (ms: number) => BigInt(ms) * 1_000_000n
  const search = {
    filter: {
      ...{ workspaceId, surfaceId: undefined, serviceName: undefined },
      // A window does not contain its start.
      ...{ fromNano: nanos(startMs + 1), toNano: nanos(endMs + 1) },
    },
    matchers: selector.matchers.filter(({ label }) => label !== NAME_LABEL),
    grid: {
      baseMs: grid.startMs - selector.offsetMs - leadOf(windows) * grid.stepMs,
      stepMs: grid.stepMs,
      remainderMs: selector.rangeMs === undefined ? 0 : lengthMs % grid.stepMs,
    },
    onlyLast: selector.rangeMs === undefined,
    limit: SELECTED_SERIES_MAX + 1,
  }
  const derived = derivedMetricOf(name)
  const reads =
    derived === undefined
      ? storedNames(name).map(async stored => selectSamples(clickhouse, stored, search, signal))
      : [selectDerivedSamples(clickhouse, { metric: derived, part: name }, search, signal)]
  const rows = (await Promise.all(reads).catch(refuseExpression)).flat()
  if (rows.length > SELECTED_SERIES_MAX) {
    throw new PromqlError(
      `the selector of ${JSON.stringify(name)} matches more than ${SELECTED_SERIES_MAX} series: add matchers`,
      'execution',
    )
  }
  return toldApart(rows.map(row => [row, sampled(name, row)] as const))
}

/** Refuses a query whose expression for a label is invalid. */
export function refuseExpression(error: unknown): never {
  if (!isClickHouseCode(error, CANNOT_COMPILE_REGEXP)) throw error
  throw new PromqlError('error parsing regexp: a matcher has an expression that RE2 does not accept')
}

/** Returns the name of the metric that a selector selects. */
export function nameOf({ matchers }: SelectorExpression): string {
  const ofName = matchers.filter(({ label }) => label === NAME_LABEL)
  const [only] = ofName
  if (only !== undefined && ofName.length === 1 && only.operator === '=') return only.value
  throw new PromqlError(
    'a selector without the name of one metric is not supported in a query: docs/grafana.md lists what is',
  )
}

function sampled(name: string, { le, labels, isDelta, segments }: SampleSeriesRow): SampledSeries {
  return { labels: new Map(labelsOf(name, le === '' ? labels : { ...labels, le })), isDelta, segments }
}

/** Returns the labels of a series. Attributes without a key, or with that of the name of the metric, are none. */
export function labelsOf(name: string, given: Readonly<Record<string, string>>): [label: string, value: string][] {
  const { [NAME_LABEL]: _, '': __, ...attributes } = given
  return [[NAME_LABEL, name], ...Object.entries(attributes).filter(([, value]) => value !== '')]
}

/** Adds the label `series.id` to series with the same labels, which differ in attributes of resource or scope. */
function toldApart(found: readonly (readonly [SampleSeriesRow, SampledSeries])[]): readonly SampledSeries[] {
  const counts = new Map<string, number>()
  const keys = found.map(([, { labels }]) => labelsText(labels))
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return found.map(([{ seriesId }, series], i) =>
    counts.get(keys[i] as string) === 1
      ? series
      : { ...series, labels: new Map([...series.labels, ['series.id', seriesId]]) },
  )
}
