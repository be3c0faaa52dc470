import type { LoadMode, LoadPlan, LoadResult } from '../load/plan.ts'
import type { LoadGenerator } from '../load/start-generator.ts'
import { timeSyncs } from '../machine/disk.ts'
import { percentile } from '../report/statistics.ts'
import { type IngestContender, runAndEmpty } from './measure-ingest.ts'

/** Latency of an edge over many connections, against a server that does nothing. */
export interface OpenLoop {
  /** Requests a second that the empty route answers in a closed loop. */
  readonly emptyPerSecond: number
  /** Requests a second that the edge answered. `OFFERED_SHARE` of `emptyPerSecond` were due. */
  readonly edgePerSecond: number
  readonly edge: LoadResult
  /** The same requests, sent to the empty route. */
  readonly empty: LoadResult
  /** Latency with one client in a closed loop. */
  readonly alone: LoadResult
  readonly fsyncP50Ms: number
  readonly fsyncP99Ms: number
}

/** Connections of the open loop. */
export const OPEN_CONNECTIONS = 2_000

/** Share of the empty route's rate that is due: slightly more than the goal, because the last answers arrive later. */
const OFFERED_SHARE = 0.455

/** The collaborators of an open loop. */
interface OpenLoopDeps {
  readonly generator: LoadGenerator
  readonly edge: IngestContender
  readonly emptyRoute: IngestContender
  /** Directory on the disk of Redis. */
  readonly dir: string
}

/** Measures one round. Throws if a server returned anything but 200. */
export async function measureOpenLoop(
  { generator, edge, emptyRoute, dir }: OpenLoopDeps,
  durationMs: number,
): Promise<OpenLoop> {
  const run = (contender: IngestContender, connections: number, mode: LoadMode) =>
    runAndEmpty(generator, contender, planFor(contender, connections, mode, durationMs))
  const syncs = await timeSyncs(dir, 200)
  const alone = await run(edge, 1, { kind: 'closed' })
  const full = await run(emptyRoute, OPEN_CONNECTIONS, { kind: 'closed' })
  const emptyPerSecond = full.ok / full.seconds
  const offered: LoadMode = { kind: 'open', requestsPerSecond: OFFERED_SHARE * emptyPerSecond }
  const empty = await run(emptyRoute, OPEN_CONNECTIONS, offered)
  const open = await run(edge, OPEN_CONNECTIONS, offered)
  return {
    emptyPerSecond,
    edgePerSecond: open.ok / open.seconds,
    edge: open,
    empty,
    alone,
    fsyncP50Ms: percentile(syncs, 0.5),
    fsyncP99Ms: percentile(syncs, 0.99),
  }
}

function planFor(
  { port, publicKey }: IngestContender,
  connections: number,
  mode: LoadMode,
  durationMs: number,
): LoadPlan {
  return {
    port,
    path: '/drain/v1/traces',
    headers: { 'x-service-public-key': publicKey, 'content-type': 'application/x-protobuf' },
    connections,
    payload: { spans: 1, pool: 64, freshIds: false },
    mode,
    // Where the queue of a listening socket is full, a connection is open only after a second attempt, a second later.
    warmUpMs: connections === 1 ? 200 : 2_500,
    durationMs,
  }
}
