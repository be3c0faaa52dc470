import type { LoadMode } from '../load/plan.ts'
import { type Stage, startInstallation } from '../services/start-stage.ts'
import { acceptedSpans, countSpans, SPANS, untilStored } from './measure-stored.ts'

/** Sends spans to the product. */
export interface SpanSource {
  /** Sends spans for this time, and waits until all of them are stored. Returns the spans stored in a second. */
  storeMore(durationMs: number): Promise<number>
  /** Sends this many spans a second for this time, and waits until all of them are stored. */
  storeAtRate(spansPerSecond: number, durationMs: number): Promise<void>
}

/** Starts an edge and a worker on existing stores. */
export async function startSpanSource(stage: Stage): Promise<SpanSource> {
  const { client } = stage.clickhouse
  const { plan } = await startInstallation(stage)
  async function send(mode: LoadMode, durationMs: number): Promise<number> {
    const before = await countSpans(client)
    const startedAt = performance.now()
    const spans = acceptedSpans(await stage.generator.run({ ...plan, mode, durationMs }))
    await untilStored(client, before + spans)
    return (spans / (performance.now() - startedAt)) * 1_000
  }
  return {
    storeMore: durationMs => send({ kind: 'closed' }, durationMs),
    async storeAtRate(spansPerSecond, durationMs) {
      await send({ kind: 'open', requestsPerSecond: spansPerSecond / SPANS }, durationMs)
    },
  }
}
