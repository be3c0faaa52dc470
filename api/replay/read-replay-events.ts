import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type ChunksPageKey, selectReplayChunks } from '../../clickhouse/queries/replay/select-replay-chunks.ts'
import { selectSessionExists } from '../../clickhouse/queries/sessions/select-session-exists.ts'
import type { SessionKey } from '../../clickhouse/queries/sessions/session-key.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import { readReplayEvents, replayEventsQuerySchema } from '../../schemas/http/replay.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import type { FairShares } from '../../shared/concurrency/fair-shares.ts'
import {
  type Header,
  type IdentifiedRequest,
  NO_SNIFF,
  NO_STORE,
  ProblemError,
  type Reply,
  type Route,
} from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { overShareProblem } from '../http/read-shares.ts'
import { notFound, SESSIONS } from '../http/resource.ts'
import { listChunks } from './chunks.ts'
import { MissingChunk } from './inflated-object.ts'
import { mergeEvents } from './merge-events.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'getStream' | 'head'>
  readonly replayShares: ReplayShares
}

/** Resources that the streams of all callers share. */
export interface ReplayShares {
  readonly streams: FairShares
  /** Open chunks, besides the first one of each stream. */
  readonly chunks: FairShares
}

/** Overlapping chunks, of 0.5 MB each. More windows of one person are rarely active within the same seconds. */
const OPEN_CHUNKS_MAX = 16

const HEADERS: readonly Header[] = [['content-type', 'application/x-ndjson'], NO_SNIFF, NO_STORE]

/**
 * Returns the route that streams the events of a session's replay, or of a part of it, in the order of time, as JSON lines
 * (docs/api/sessions.md#replay-events). If a store fails after the response has begun, or lacks a chunk, the response is cut
 * short.
 */
export function readReplayEventsRoute(deps: Deps): Route {
  const { clickhouse, objects, replayShares } = deps
  return guardedRoute(deps, readReplayEvents, {
    resource: SESSIONS,
    query: replayEventsQuerySchema,
    reply: streamReply,
    async run({ workspaceId, param, query, deadline, closed, exchange }): Promise<Outcome<Stream>> {
      const sessionId = param('sessionId')
      if (!sessionIdSchema.safeParse(sessionId).success) return notFound(SESSIONS)
      const { fromMs, toMs } = { fromMs: unixMs(query.from), toMs: unixMs(query.to) }
      const key = { workspaceId, sessionId, windowId: query.window, fromMs, toMs }
      const [isKnown, [first]] = await Promise.all([
        selectSessionExists(clickhouse, key, deadline),
        selectReplayChunks(clickhouse, { ...key, limit: 1, after: undefined }, deadline),
      ])
      if (!isKnown) return notFound(SESSIONS)
      if (first === undefined) return { ok: true, value: { events: noEvents(), onEnd: () => {} } }
      // Checks that the store is available while a problem can still be returned.
      await objects.head(first.objectKey)
      if (!replayShares.streams.take(workspaceId, 1)) return { ok: false, problem: TOO_MANY_STREAMS }
      const onEnd = () => replayShares.streams.give(workspaceId, 1)
      return { ok: true, value: { events: eventsOf(deps, key, closed, exchange), onEnd } }
    },
  })
}

const TOO_MANY_STREAMS = overShareProblem('too many replays of the workspace are being read', readReplayEvents)

interface Stream {
  readonly events: AsyncIterable<Uint8Array>
  readonly onEnd: () => void
}

async function* eventsOf(
  { clickhouse, objects, logger, queryTimeoutMs, replayShares }: Deps,
  key: SessionKey & Pick<ChunksPageKey, 'windowId' | 'fromMs' | 'toMs'>,
  closed: AbortSignal,
  request: IdentifiedRequest,
): AsyncGenerator<Buffer> {
  const { workspaceId, fromMs, toMs } = key
  const chunks = listChunks(clickhouse, key, () => AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed]))
  try {
    yield* mergeEvents(objects, chunks, {
      openMax: OPEN_CHUNKS_MAX,
      openShares: replayShares.chunks,
      owner: workspaceId,
      fromMs,
      toMs,
      signal: closed,
      onCrowded: () => {
        const { requestId } = request
        logger.warn({ requestId, workspaceId }, 'more replay chunks overlap than may be open at once')
      },
    })
  } catch (error) {
    if (!closed.aborted) logger.warn({ requestId: request.requestId, ...errorFields(error) }, 'a replay was cut short')
    throw error instanceof MissingChunk ? new ProblemError(gone(error), { cause: error }) : error
  }
}

const gone = ({ objectKey }: MissingChunk): Problem => ({
  code: 'NOT_FOUND',
  status: 410,
  message: `the recording cannot be read: its chunk ${objectKey} is missing from the object store`,
})

const unixMs = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time))

async function* noEvents(): AsyncGenerator<Uint8Array> {}

function streamReply({ events, onEnd }: Stream): Reply {
  return { status: 200, headers: HEADERS, body: events, onEnd }
}
