import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectReplayChunks } from '../../clickhouse/queries/replay/select-replay-chunks.ts'
import { selectSessionExists } from '../../clickhouse/queries/sessions/select-session-exists.ts'
import { readReplayEvents } from '../../schemas/http/replay/operations.ts'
import { replayEventsQuerySchema } from '../../schemas/http/replay/schemas.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import type { Header, Reply, Route } from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { NO_STORE, type Outcome } from '../http/outcome.ts'
import { notFound, SESSIONS } from '../http/resource.ts'
import { listChunks } from './chunks.ts'
import { mergeEvents } from './merge-events.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'getStream' | 'head'>
  /** How many replays may be read at once. */
  readonly replayStreams: number
}

/** Overlapping chunks, of 0.3 MB each. More windows of one person are rarely active within the same seconds. */
const OPEN_CHUNKS_MAX = 16
/** Limit of buffered events. A chunk of 100 MiB may be a single event. */
const HELD_LIMIT_BYTES = 128 * 1024 * 1024

const HEADERS: readonly Header[] = [['content-type', 'application/x-ndjson'], NO_STORE]

/**
 * Returns the route that streams every event of a session's replay in the order of time, as JSON lines
 * (docs/contract.md#replay-events). If a store fails after the response has begun, the response is cut short.
 */
export function readReplayEventsRoute(deps: Deps): Route {
  const { clickhouse, objects } = deps
  const streams = new StreamLimit(deps.replayStreams, deps.logger)
  return guardedRoute(deps, readReplayEvents, {
    resource: SESSIONS,
    query: replayEventsQuerySchema,
    reply: streamReply,
    async run({ workspaceId, param, query, deadline }): Promise<Outcome<AsyncIterable<Uint8Array>>> {
      const sessionId = param('sessionId')
      if (!sessionIdSchema.safeParse(sessionId).success) return notFound(SESSIONS)
      const key = { workspaceId, sessionId, windowId: query.window }
      const [isKnown, [first]] = await Promise.all([
        selectSessionExists(clickhouse, key, deadline),
        selectReplayChunks(clickhouse, { ...key, limit: 1, after: undefined }, deadline),
      ])
      if (!isKnown) return notFound(SESSIONS)
      if (first === undefined) return { ok: true, value: noEvents() }
      if (streams.isReached) return { ok: false, problem: SESSIONS.unavailable }
      // Checks that the store is available while a problem can still be returned.
      await objects.head(first.objectKey)
      return { ok: true, value: streams.counted(eventsOf(deps, key)) }
    },
  })
}

/** Bounds how many replays are read at once, because each holds buffers. */
class StreamLimit {
  readonly #limit: number
  readonly #logger: Logger
  #open = 0

  constructor(limit: number, logger: Logger) {
    this.#limit = limit
    this.#logger = logger
  }

  get isReached(): boolean {
    return this.#open >= this.#limit
  }

  /** Counts a stream from the read of its first event until it ends or is closed. */
  async *counted(events: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    if (this.isReached) throw new TransientError('too many replays are being read')
    this.#open++
    try {
      yield* events
    } catch (error) {
      this.#logger.warn(errorFields(error), 'a replay was cut short')
      throw error
    } finally {
      this.#open--
    }
  }
}

function eventsOf(
  { clickhouse, objects, logger, queryTimeoutMs }: Deps,
  key: { workspaceId: string; sessionId: string; windowId: string | undefined },
): AsyncGenerator<Buffer> {
  return mergeEvents(objects, listChunks(clickhouse, key, queryTimeoutMs), {
    openMax: OPEN_CHUNKS_MAX,
    heldLimitBytes: HELD_LIMIT_BYTES,
    onCrowded: () => {
      const { workspaceId } = key
      logger.warn({ workspaceId, openMax: OPEN_CHUNKS_MAX }, 'more replay chunks overlap than may be open at once')
    },
  })
}

async function* noEvents(): AsyncGenerator<Uint8Array> {}

function streamReply(body: AsyncIterable<Uint8Array>): Reply {
  return { status: 200, headers: HEADERS, body }
}
