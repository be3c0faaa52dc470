import type { TraceFilter } from '../../../clickhouse/queries/traces/search/trace-filter.ts'
import { SPAN_STATUSES } from '../../../schemas/http/traces/schemas.ts'
import { invalid, type Outcome } from '../../http/outcome.ts'

/** A condition that one span of a trace must meet, in the words of another tool. */
export type SpanCondition =
  | { readonly of: 'service' | 'name'; readonly value: string }
  | { readonly of: 'status'; readonly value: string }
  | { readonly of: 'minDuration'; readonly nanos: bigint }
  | { readonly of: 'attribute'; readonly key: string; readonly value: string }

/** Range of a search in Unix ns. */
export interface SearchRange {
  readonly fromNano: bigint
  readonly toNano: bigint
}

/** The time at which ClickHouse's nanoseconds end, which is in 2262. */
export const SPAN_NANO_MAX = 2n ** 63n - 1n

/** Returns a range within the times of spans. */
export function searchRange(fromNano: bigint | undefined, toNano: bigint | undefined): SearchRange {
  const bounded = (nano: bigint) => (nano < 0n ? 0n : nano < SPAN_NANO_MAX ? nano : SPAN_NANO_MAX)
  return { fromNano: bounded(fromNano ?? 0n), toNano: bounded(toNano ?? SPAN_NANO_MAX) }
}

/** Returns the filter of all conditions together. Refuses a condition of which a search can have only one, if there are more. */
export function filterOfConditions(conditions: readonly SpanCondition[], range: SearchRange): Outcome<TraceFilter> {
  const seen = new Set<string>()
  for (const { of } of conditions) {
    if (seen.has(of)) return invalid(`a search can have only one condition on ${NAMES[of]}: leave out the others`)
    seen.add(of)
  }
  const textOf = (of: SpanCondition['of']) => {
    const found = conditions.find(condition => condition.of === of)
    return found !== undefined && 'value' in found ? found.value : undefined
  }
  const status = textOf('status')?.toUpperCase()
  if (status !== undefined && !(SPAN_STATUSES as readonly string[]).includes(status)) {
    return invalid(`a status must be one of ${SPAN_STATUSES.join(', ').toLowerCase()}`)
  }
  const attribute = conditions.find(condition => condition.of === 'attribute')
  const duration = conditions.find(condition => condition.of === 'minDuration')
  const value: TraceFilter = {
    serviceName: textOf('service'),
    spanName: textOf('name'),
    status: status === undefined ? undefined : (SPAN_STATUSES as readonly string[]).indexOf(status),
    minDurationNanos: duration?.nanos,
    attributes: attribute ? [{ key: attribute.key, operator: '=', value: attribute.value }] : [],
    sessionId: undefined,
    hasFinding: false,
    ...range,
  }
  return { ok: true, value }
}

const NAMES: Readonly<Record<SpanCondition['of'], string>> = {
  service: 'the service',
  name: 'the name of spans',
  status: 'the status',
  minDuration: 'the duration',
  attribute: 'attributes of spans',
}

const UNIT_NANOS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
}

/** Returns a duration as Go writes it, such as `1m30s` or `1.5ms`, in ns, or undefined if the text is none. */
export function goDurationNanos(text: string): bigint | undefined {
  if (text.length > 64 || !/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined
  let nanos = 0
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)) {
    nanos += Number(number) * (UNIT_NANOS[unit as string] as number)
  }
  return nanos < Number(SPAN_NANO_MAX) ? BigInt(Math.round(nanos)) : undefined
}
