import { TRACE_LIMIT_MAX, type Trace } from '../../../schemas/http/traces/schemas.ts'
import { addTraces } from '../../data/fill-spans.ts'
import { type TraceTarget, targetsOf } from '../../data/stored-traces.ts'
import type { Row } from '../../support/scenario.ts'
import { measureGets, type ReadPlan } from './measure-gets.ts'
import type { ReadDeps } from './measure-reads.ts'

interface TraceSize {
  readonly spans: number
  /** Number of different traces, read in turn. */
  readonly traces: number
  readonly reads: ReadPlan
}

const SIZES: readonly TraceSize[] = [
  { spans: 10, traces: 40, reads: { rounds: 3, perRound: 40 } },
  { spans: 1_000, traces: 40, reads: { rounds: 3, perRound: 40 } },
  { spans: 10_000, traces: 8, reads: { rounds: 3, perRound: 12 } },
  { spans: 100_000, traces: 3, reads: { rounds: 3, perRound: 4 } },
]

/** Adds traces of every size to the filled days, and reads them. */
export async function measureTraceSizes(deps: ReadDeps, firstDay: string): Promise<Row[]> {
  const rows: Row[] = []
  for (const { spans, traces, reads } of SIZES) {
    const targets = await targetsOf(deps.client, await addTraces(deps.client, spans, traces, firstDay))
    const trace = `trace of ${spans.toLocaleString('en')} spans`
    const targetAt = (i: number) => targets[i % targets.length] as TraceTarget
    const get = async (i: number) => {
      const body = await deps.reader.read(targetAt(i), 'finding')
      if (i === 0) assertSpans(body, spans)
      return body
    }
    rows.push(...(await measureGets(deps.client, { name: `by size: ${trace}`, get }, reads)))
    const getColumns = (i: number) => deps.reader.read(targetAt(i), 'id')
    rows.push(...(await measureGets(deps.client, { name: `as columns: ${trace}`, get: getColumns }, reads)))
  }
  return rows
}

function assertSpans(body: string, stored: number): void {
  const { spans, truncated } = JSON.parse(body) as Trace
  const shown = Math.min(stored, TRACE_LIMIT_MAX)
  if (spans.length !== shown || truncated !== stored > shown) {
    throw new Error(`the API returned ${spans.length} spans of a trace of ${stored}`)
  }
}
