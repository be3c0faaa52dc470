/** Counts of all that was sent, for comparison with reads and pages. */
export interface Truth {
  traces: number
  /** Spans by service, log records by severity, data points by metric. */
  readonly spans: Record<string, number>
  readonly logs: Record<string, number>
  readonly points: Record<string, number>
  /** Total of the counted events or observed values by metric. */
  readonly sums: Record<string, number>
  /** Occurrences of findings by service and type, as `shop-web TypeError` (docs/api/findings.md#fingerprint). */
  readonly occurrences: Record<string, number>
  /** The identifier of the user by session; null if the user is not known. */
  readonly sessions: Record<string, string | null>
}

/** A part of the truth that has counts. */
type Counted = 'spans' | 'logs' | 'points' | 'sums' | 'occurrences'

/** Creates the truth before anything is sent. */
export function createTruth(): Truth {
  return { traces: 0, spans: {}, logs: {}, points: {}, sums: {}, occurrences: {}, sessions: {} }
}

/** Adds to a count. */
export function count(truth: Truth, part: Counted, name: string, more = 1): void {
  truth[part][name] = (truth[part][name] ?? 0) + more
}

/** Returns the sum of the counts of a part. */
export function totalOf(truth: Truth, part: Counted): number {
  return Object.values(truth[part]).reduce((sum, more) => sum + more, 0)
}
