import type { z } from 'zod'
import { durationMs } from '../../../promql/literals.ts'
import { PromqlError } from '../../../promql/promql-error.ts'
import type { TimeGrid } from '../../../promql/vector.ts'
import { LABELS_MAX, RESOLUTION_MAX } from '../../../schemas/http/grafana/prometheus-schemas.ts'
import { METRICS_RANGE_DAYS_MAX } from '../../../schemas/http/metrics.ts'
import { DAY_MS, HOUR_MS } from '../../../schemas/units.ts'
import { checkValue } from '../../../shared/http/check-value.ts'

/** Returns the parameters of a request by their schema. Throws a PromqlError that names the first invalid one. */
export function parametersOf<S extends z.ZodObject>(schema: S, given: URLSearchParams): z.infer<S> {
  const values = Object.fromEntries(
    Object.keys(schema.shape).map(name => {
      const all = given.getAll(name)
      if (name.endsWith('[]')) return [name, all.length === 0 ? undefined : all]
      // Grafana sends parameters without a value.
      return [name, all[0] === '' ? undefined : all[0]]
    }),
  )
  const checked = checkValue(schema, values)
  if (checked.ok) return checked.value
  const [issue] = checked.issues
  throw new PromqlError(`invalid parameter "${issue?.path[0] as string}": ${issue?.message}`)
}

/** Runs a parser of a parameter, so that its refusals name the parameter. */
export function inParameter<T>(name: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof PromqlError)) throw error
    throw new PromqlError(`invalid parameter "${name}": ${error.message}`, error.type)
  }
}

const STEP_MS_MAX = 366 * DAY_MS

/** Returns the times of a range query. */
export function gridOf({ start, end, step }: { start: number; end: number; step: string }): TimeGrid {
  if (end < start) throw new PromqlError('invalid parameter "end": end timestamp must not be before start time')
  const stepMs = Math.round(durationMs(step) ?? Number(step || Number.NaN) * 1_000)
  if (!(stepMs > 0 && stepMs <= STEP_MS_MAX)) {
    throw new PromqlError(
      'invalid parameter "step": must be a positive number of seconds or a duration, at most a year',
    )
  }
  const count = Math.floor((end - start) / stepMs) + 1
  if (count > RESOLUTION_MAX + 1) {
    throw new PromqlError(
      'exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)',
    )
  }
  return { startMs: start, stepMs, count }
}

const RANGE_MS_MAX = METRICS_RANGE_DAYS_MAX * 24 * HOUR_MS

/** Returns the range of a list in Unix ns: the last hour unless given, and the newest days of one that is too long. */
export function listRange(
  { start, end }: { start?: number | undefined; end?: number | undefined },
  nowMs: number,
): { readonly fromNano: bigint; readonly toNano: bigint } {
  const toMs = end ?? nowMs
  const fromMs = Math.max(start ?? toMs - HOUR_MS, toMs - RANGE_MS_MAX, 0)
  return { fromNano: BigInt(fromMs) * 1_000_000n, toNano: BigInt(Math.max(toMs, 0) + 1) * 1_000_000n }
}

/** Returns how many entries a list may have. 0 is without a limit of the client, as in Prometheus. */
export function listLimit(limit: number | undefined): number {
  return limit === undefined || limit === 0 ? LABELS_MAX : Math.min(limit, LABELS_MAX)
}
