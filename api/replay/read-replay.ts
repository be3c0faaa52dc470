import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectReplayChunks } from '../../clickhouse/queries/replay/select-replay-chunks.ts'
import { selectReplayGaps, selectReplayUnseededWindows } from '../../clickhouse/queries/replay/select-replay-gaps.ts'
import { selectSessionExists } from '../../clickhouse/queries/sessions/select-session-exists.ts'
import { REPLAY_FAULTS_MAX, type ReplayPage, readReplay, replayQuerySchema } from '../../schemas/http/replay.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage } from '../http/cursor.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { notFound, SESSIONS } from '../http/resource.ts'
import { decodeChunkCursor, encodeChunkCursor, presentChunk, presentGap } from './chunks.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
}

/**
 * Returns the route that lists the chunks of a session's replay in reading order, page by page, with the gaps of the replay
 * (docs/api/sessions.md#sessions).
 */
export function readReplayRoute(deps: Deps): Route {
  const { clickhouse } = deps
  return guardedRoute(deps, readReplay, {
    resource: SESSIONS,
    query: replayQuerySchema,
    async run({ workspaceId, param, query: { limit, cursor }, deadline }): Promise<Outcome<ReplayPage>> {
      const sessionId = param('sessionId')
      if (!sessionIdSchema.safeParse(sessionId).success) return notFound(SESSIONS)
      const key = { workspaceId, sessionId }
      const after = decodeChunkCursor(cursor)
      if (!after.ok) return after
      const [isKnown, rows, gaps, windows] = await Promise.all([
        selectSessionExists(clickhouse, key, deadline),
        selectReplayChunks(clickhouse, { ...key, limit: limit + 1, after: after.value }, deadline),
        selectReplayGaps(clickhouse, key, REPLAY_FAULTS_MAX + 1, deadline),
        selectReplayUnseededWindows(clickhouse, key, REPLAY_FAULTS_MAX + 1, deadline),
      ])
      if (!isKnown) return notFound(SESSIONS)
      const { shown, nextCursor } = cutPage(rows, limit, encodeChunkCursor)
      const value = {
        chunks: shown.map(presentChunk),
        nextCursor,
        gaps: gaps.slice(0, REPLAY_FAULTS_MAX).map(presentGap),
        missingFullSnapshots: windows.slice(0, REPLAY_FAULTS_MAX),
        truncated: gaps.length > REPLAY_FAULTS_MAX || windows.length > REPLAY_FAULTS_MAX,
      }
      return { ok: true, value }
    },
  })
}
