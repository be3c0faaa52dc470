import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { Period } from '../../clickhouse/queries/pipeline/period.ts'
import { selectLetterCounts, selectPurgedLetters } from '../../clickhouse/queries/pipeline/select-letter-counts.ts'
import { type RateRow, selectRates } from '../../clickhouse/queries/pipeline/select-rates.ts'
import { selectRefusals } from '../../clickhouse/queries/pipeline/select-refusals.ts'
import type { PipelineHistory } from '../../schemas/http/pipeline.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'

/** Loads what has become of the requests of a period. */
export async function loadHistory(
  clickhouse: ClickHouseClient,
  period: Period,
  signal: AbortSignal,
): Promise<PipelineHistory> {
  const [rates, refused, letters, purgedLetters] = await Promise.all([
    selectRates(clickhouse, period, signal),
    selectRefusals(clickhouse, period, signal),
    selectLetterCounts(clickhouse, period, signal),
    selectPurgedLetters(clickhouse, period, signal),
  ])
  const { startMs, stepMs, count } = period.steps
  return {
    from: rfc3339FromUnixMs(startMs),
    to: rfc3339FromUnixMs(startMs + count * stepMs),
    stepSeconds: stepMs / 1_000,
    rates: ratesOf(rates, count),
    refused: refused.map(({ kind, status, requests }) => ({
      kind,
      status: Number(status),
      requests: Number(requests),
    })),
    letters: letters.map(({ reason, dead, replayed, discarded }) => ({
      ...{ reason, dead: Number(dead), replayed: Number(replayed), discarded: Number(discarded) },
    })),
    purgedLetters,
  }
}

function ratesOf(rows: readonly RateRow[], steps: number): PipelineHistory['rates'] {
  const kinds = [...new Set(rows.map(({ kind }) => kind))]
  return kinds.map(kind => {
    const own = new Map(rows.filter(row => row.kind === kind).map(row => [row.step, row]))
    const over = (name: 'requests' | 'records' | 'bytes' | 'deadLettered') =>
      Array.from({ length: steps }, (_, step) => Number(own.get(step)?.[name] ?? 0))
    return {
      kind,
      requests: over('requests'),
      records: over('records'),
      bytes: over('bytes'),
      deadLettered: over('deadLettered'),
    }
  })
}
