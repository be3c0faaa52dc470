import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { Expression } from '../../../promql/expression.ts'
import { PromqlError } from '../../../promql/promql-error.ts'
import { querySeries } from '../../../promql/query-series.ts'
import type { Series, TimeGrid, Value } from '../../../promql/vector.ts'
import { RESPONSE_VALUES_MAX } from '../../../schemas/http/grafana/prometheus-schemas.ts'

/** A query of a workspace. */
export interface EvaluatedQuery {
  readonly workspaceId: string
  readonly expression: Expression
  readonly grid: TimeGrid
  /** Whether the result is of the one time of the grid. */
  readonly isInstant: boolean
}

/** Reads what a query selects, evaluates it and returns the JSON of the response. Throws a PromqlError. */
export async function evaluateQuery(
  clickhouse: ClickHouseClient,
  { workspaceId, expression, grid, isInstant }: EvaluatedQuery,
): Promise<Uint8Array> {
  // The main thread ends the reads of a query.
  const { signal } = new AbortController()
  const value = await querySeries(clickhouse, { workspaceId, expression, grid }, signal)
  const data = isInstant ? presentInstant(value, grid.startMs) : presentRange(value, grid)
  return Buffer.from(JSON.stringify({ status: 'success', data }))
}

function presentInstant(value: Value, timeMs: number): unknown {
  const sampleOf = (number: number) => [timeMs / 1_000, numberText(number)]
  switch (value.type) {
    case 'string':
      return { resultType: 'string', result: [timeMs / 1_000, value.text] }
    case 'scalar':
      return { resultType: 'scalar', result: sampleOf(value.values[0] as number) }
    case 'vector': {
      const present = value.series.filter(({ has }) => has[0] === 1)
      return {
        resultType: 'vector',
        result: present.map(({ labels, values }) => ({
          metric: Object.fromEntries(labels),
          value: sampleOf(values[0] as number),
        })),
      }
    }
  }
}

function presentRange(value: Value, { startMs, stepMs, count }: TimeGrid): unknown {
  const everywhere = () => new Uint8Array(count).fill(1)
  const series: readonly Series[] =
    value.type === 'vector'
      ? value.series
      : value.type === 'scalar'
        ? [{ labels: new Map(), values: value.values, has: everywhere() }]
        : []
  if (series.length * count > RESPONSE_VALUES_MAX) {
    const values = series.reduce((sum, { has }) => sum + has.reduce((all, present) => all + present, 0), 0)
    if (values > RESPONSE_VALUES_MAX) {
      throw new PromqlError(
        `the result has ${values} values, of which there may be ${RESPONSE_VALUES_MAX}: request fewer series or a longer step`,
        'execution',
      )
    }
  }
  const result = series.map(({ labels, values, has }) => {
    const samples: [number, string][] = []
    for (let step = 0; step < count; step++) {
      if (has[step] === 1) samples.push([(startMs + step * stepMs) / 1_000, numberText(values[step] as number)])
    }
    return { metric: Object.fromEntries(labels), values: samples }
  })
  return { resultType: 'matrix', result }
}

/** Returns a number as Prometheus writes it. */
function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return String(value)
}
