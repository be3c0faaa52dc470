import { expressionFault } from '../../promql/query-series.ts'
import type { AlertRule } from '../../schemas/records/alerts.ts'

/** Returns why a rule at a place of a request has an expression that can never be evaluated, or undefined. */
export function faultOfExpression(place: string, { metric }: Pick<AlertRule, 'metric'>): string | undefined {
  const fault = metric && expressionFault(metric.expression)
  return fault === undefined ? undefined : `${place}.metric.expression is invalid: ${fault}`
}
