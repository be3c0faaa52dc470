import { setTimeout as delay } from 'node:timers/promises'
import type { FindingsPage } from '../../schemas/http/findings/schemas.ts'
import type { LoadPlan, LoadResult } from '../load/plan.ts'
import type { LoadGenerator } from '../load/start-generator.ts'
import { type BenchSurface, issueSurface } from '../services/start-product.ts'
import { type InstallationOptions, type Stage, startInstallation } from '../services/start-stage.ts'
import { BENCH_DATABASE, type BenchClickHouse } from '../services/start-stores.ts'
import type { TraceReader } from '../services/start-trace-reader.ts'
import { truncateTables } from './clickhouse-work.ts'
import { type Marker, type MarkerSender, openMarkerSender } from './marker-sender.ts'
import { type MarkerWatch, type SelectVisible, storedMarkers, watchMarkers } from './marker-watch.ts'
import { acceptedSpans, untilNothingComes, untilStored } from './measure-stored.ts'
import { meterProcesses, type ProcessUse } from './process-meter.ts'

/** The running pipeline of the freshness scenario. */
export interface FreshnessBench {
  readonly generator: LoadGenerator
  readonly clickhouse: BenchClickHouse
  readonly port: number
  /** Surface whose workspace contains only markers. */
  readonly markerSurface: BenchSurface
  /** With it, markers have an exception whose type begins with a prefix, and are visible when it selects them. */
  readonly exceptionsSeen?: (typePrefix: string) => SelectVisible
  readonly pids: Readonly<Record<string, number>>
  /** Time between two markers under a load. Each is a request, a commit and an fsync, so they are part of the load. */
  readonly markerEveryMs: number
}

/** Starts edge and worker, and issues the surface of the markers. Returns the plan of a load of another surface too. */
export async function startFreshnessBench(stage: Stage, markerEveryMs: number, options: InstallationOptions = {}) {
  const { generator, clickhouse, redis } = stage
  const { edge, pids, plan } = await startInstallation(stage, options)
  const bench: FreshnessBench = {
    generator,
    clickhouse,
    port: edge.port,
    markerSurface: await issueSurface(redis),
    markerEveryMs,
    pids: { ...pids, 'markers and polls': process.pid },
  }
  return { bench, plan }
}

/** Markers of one measurement. */
export interface Freshness {
  readonly markers: readonly Marker[]
}

/** Freshness under a load. */
export interface LoadedFreshness extends Freshness {
  readonly load: LoadResult
  /** Use of the processes in the measured window of the load. */
  readonly use: Readonly<Record<string, ProcessUse>>
}

/** The least time between two markers of the idle pipeline: longer than between two inserts with steady traffic. */
export const IDLE_MS = 300

/** Sends one marker at a time, alone in its batch, and so measures the idle pipeline. */
export async function measureIdle(bench: FreshnessBench, count: number): Promise<Freshness> {
  return withMarkers(bench, async (sender, watch) => {
    for (let i = 0; i < count; i++) {
      sender.send()
      await sender.untilAnswered()
      await watch.untilVisible()
      // Not synchronous with any timer of the pipeline.
      await delay(IDLE_MS + Math.random() * 50)
    }
    await untilStored(bench.clickhouse.client, count)
    return {}
  })
}

/**
 * Sends markers at fixed times during a load. Throws unless everything that was acknowledged is stored. `storedSpans`
 * returns the spans of the load that must be stored.
 */
export async function measureUnderLoad(
  bench: FreshnessBench,
  plan: LoadPlan,
  storedSpans: (load: LoadResult) => number = acceptedSpans,
): Promise<LoadedFreshness> {
  const meter = meterProcesses(bench.pids)
  return withMarkers(bench, async (sender, watch) => {
    let use: Record<string, ProcessUse> = {}
    const window = new AbortController()
    const begun = Promise.withResolvers<void>()
    const [load] = await Promise.all([
      bench.generator.run(plan, edge => {
        if (edge === 'begin') {
          meter.begin()
          begun.resolve()
        } else {
          use = meter.end()
          window.abort()
        }
      }),
      begun.promise.then(() => sendSteadily(sender, bench.markerEveryMs, window.signal)),
    ])
    await sender.untilAnswered()
    await watch.untilVisible()
    const acknowledged = sender.markers.filter(marker => marker.acknowledgedAt !== undefined).length
    await untilStored(bench.clickhouse.client, storedSpans(load) + acknowledged)
    return { load, use }
  })
}

async function withMarkers<R>(
  { clickhouse: { client }, port, markerSurface: { publicKey, workspaceId }, exceptionsSeen }: FreshnessBench,
  measure: (sender: MarkerSender, watch: MarkerWatch) => Promise<R>,
): Promise<R & Freshness> {
  await truncateTables(client, BENCH_DATABASE)
  const sender = await openMarkerSender(port, publicKey, exceptionsSeen ? 'exceptions' : 'uniform')
  const watch = exceptionsSeen
    ? watchMarkers(exceptionsSeen(sender.typePrefix), sender.markers, LIST_EVERY_MS)
    : watchMarkers(storedMarkers(client, workspaceId), sender.markers)
  try {
    const measured = await measure(sender, watch)
    await watch.stop()
    return { ...measured, markers: sender.markers }
  } catch (error) {
    await untilNothingComes(client)
    throw error
  } finally {
    sender.close()
    await watch.stop()
  }
}

/** A list takes some milliseconds of the API and of ClickHouse. */
const LIST_EVERY_MS = 50

/** Selects the markers whose finding is on the first page of findings, read as a user does. */
export function listedMarkers(
  reader: Pick<TraceReader, 'get'>,
  workspaceId: string,
  typePrefix: string,
): SelectVisible {
  return async () => {
    const { findings } = JSON.parse(await reader.get(workspaceId, '/v3/findings')) as FindingsPage
    return findings
      .filter(({ type }) => type.startsWith(typePrefix))
      .map(({ type }) => Number(type.slice(typePrefix.length)))
  }
}

/** Sends markers at fixed times, even if earlier ones have no response yet. */
async function sendSteadily(sender: MarkerSender, everyMs: number, until: AbortSignal): Promise<void> {
  for (let dueAt = performance.now(); !until.aborted; ) {
    for (; dueAt <= performance.now(); dueAt += everyMs) sender.send()
    await delay(Math.max(1, dueAt - performance.now()))
  }
}
