import type { ClickHouseClient } from '../clickhouse/client.ts'
import { evaluate } from './evaluate.ts'
import { type Expression, selectorsOf, typeOf } from './expression.ts'
import { checkSelectors, loadSamples, selectorKey } from './load-samples.ts'
import { parsePromql } from './parse-promql.ts'
import { PromqlError } from './promql-error.ts'
import type { TimeGrid, Value } from './vector.ts'

/** An expression over the metrics of a workspace, and the times at which it is evaluated. */
interface SeriesQuery {
  readonly workspaceId: string
  readonly expression: Expression
  readonly grid: TimeGrid
}

/** Reads what an expression selects and evaluates it. Throws a PromqlError if it needs too much, or a TransientError. */
export async function querySeries(
  clickhouse: ClickHouseClient,
  { workspaceId, expression, grid }: SeriesQuery,
  signal: AbortSignal,
): Promise<Value> {
  const samples = await loadSamples({ clickhouse, workspaceId, grid, signal }, selectorsOf(expression))
  return evaluate(expression, { grid, samplesOf: selector => samples.get(selectorKey(selector)) ?? [] })
}

/** Parses an expression that has a value at each time of a range. Throws a PromqlError for any other. */
export function parseSeriesQuery(text: string): Expression {
  const expression = parsePromql(text)
  const type = typeOf(expression)
  if (type === 'scalar' || type === 'vector') return expression
  throw new PromqlError(
    `invalid expression type "${type === 'range' ? 'range vector' : type}" for range query, must be Scalar or instant Vector`,
  )
}

/** Returns why an expression can never be evaluated at times of a range, or undefined. */
export function expressionFault(text: string): string | undefined {
  try {
    checkSelectors(selectorsOf(parseSeriesQuery(text)), { stepMs: 1, count: 1 })
    return undefined
  } catch (error) {
    if (error instanceof PromqlError) return error.message
    throw error
  }
}
