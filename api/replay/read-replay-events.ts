import { selectReplayChunks } from '../../clickhouse/queries/replay/select-replay-chunks.ts'
import { selectSessionExists } from '../../clickhouse/queries/sessions/select-session-exists.ts'
import { replayEventsQuerySchema } from '../../schemas/http/replay/schemas.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import type { Reply, Route } from '../../shared/http/route.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import { guardedRead, SESSIONS_GUARD, sessionNotFound } from '../http/guarded-read.ts'
import { parseQuery } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { listChunks } from './list-chunks.ts'
import { mergeEvents } from './merge-events.ts'

/** Chunks that overlap, 0.3 MB each: more windows of one person are hardly active within the same seconds. */
const OPEN_CHUNKS_MAX = 16
/** A chunk of 100 MiB may be a single event. */
const HELD_LIMIT_BYTES = 128 * 1024 * 1024

const HEADERS = [
  ['content-type', 'application/x-ndjson'],
  ['cache-control', 'no-store'],
] as const

/** Every event of a session's replay in the order of time, as JSON lines. An answer that is cut short is not whole. */
export function readReplayEventsRoute(deps: ApiDeps): Route {
  let streams = 0

  async function* counted(events: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    if (streams >= deps.replayStreams) throw new TransientError('too many replays are read at once')
    streams++
    try {
      yield* events
    } catch (error) {
      deps.logger.warn({ error: describeError(error) }, 'a replay was cut short')
      throw error
    } finally {
      streams--
    }
  }

  return {
    method: 'GET',
    path: '/v3/sessions/:sessionId/replay/events',
    bodyLimitBytes: 0,
    accept(head) {
      const sessionId = head.param('sessionId')
      const asked = { window: head.query('window') }
      const read = async (workspaceId: string, signal: AbortSignal): Promise<Outcome<AsyncIterable<Uint8Array>>> => {
        const query = parseQuery(replayEventsQuerySchema, asked, 'api-analytics')
        if (!query.ok) return query
        if (!sessionIdSchema.safeParse(sessionId).success) return sessionNotFound
        const key = { workspaceId, sessionId, windowId: query.value.window }
        const [isKnown, firstPage] = await Promise.all([
          selectSessionExists(deps.clickhouse, key, signal),
          selectReplayChunks(deps.clickhouse, { ...key, limit: 1, after: undefined }, signal),
        ])
        if (!isKnown) return sessionNotFound
        const [first] = firstPage
        if (first === undefined) return { ok: true, value: noEvents() }
        if (streams >= deps.replayStreams) return { ok: false, problem: SESSIONS_GUARD.unavailable }
        // A store that is away is a problem to answer with; once the answer has begun, it could only be cut short.
        await deps.objects.head(first.objectKey)
        return { ok: true, value: counted(eventsOf(deps, key)) }
      }
      return guardedRead(deps, head.header('authorization'), SESSIONS_GUARD, read, streamReply)
    },
  }
}

function eventsOf(
  { clickhouse, objects, logger, queryTimeoutMs }: ApiDeps,
  key: { workspaceId: string; sessionId: string; windowId: string | undefined },
): AsyncGenerator<Buffer> {
  return mergeEvents(objects, listChunks(clickhouse, key, queryTimeoutMs), {
    openMax: OPEN_CHUNKS_MAX,
    heldLimitBytes: HELD_LIMIT_BYTES,
    onCrowded: () => {
      const { workspaceId } = key
      logger.warn({ workspaceId, openMax: OPEN_CHUNKS_MAX }, 'more replay chunks overlap than are read at once')
    },
  })
}

async function* noEvents(): AsyncGenerator<Uint8Array> {}

function streamReply(body: AsyncIterable<Uint8Array>): Reply {
  return { status: 200, headers: HEADERS, body }
}
