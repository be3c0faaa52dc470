import type { z } from 'zod'
import { type RoutedOperation, refusesOtherParameters } from '../../schemas/http/operation.ts'
import { namesOf } from '../../schemas/rule-of.ts'
import { checkValue } from './check-value.ts'

/** Valid query parameters, or a fault that names the first invalid parameter and the rule it breaks. */
type ParsedQuery<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string }

/** Parses query parameters by their schema. Throws nothing, because every fault is the client's. */
export function parseQuery<S extends z.ZodType>(
  schema: S,
  values: Readonly<Record<string, string | undefined>>,
): ParsedQuery<z.infer<S>> {
  return checkValue(schema, values)
}

/** Returns the fault of a query with another parameter than the known ones, if the operation refuses those. */
export function otherParameterFault(
  operation: RoutedOperation,
  query: string,
  known: readonly string[],
): string | undefined {
  if (query === '' || !refusesOtherParameters(operation)) return undefined
  const other = [...new URLSearchParams(query).keys()].find(name => !known.includes(name))
  if (other === undefined) return undefined
  const instead = known.length === 0 ? 'it has none' : `use ${known.join(', ')}`
  return `${namesOf([other])} is not a query parameter of this operation: ${instead}`
}
