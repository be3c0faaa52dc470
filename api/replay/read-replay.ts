import { selectReplayChunks } from '../../clickhouse/queries/replay/select-replay-chunks.ts'
import { selectReplayGaps } from '../../clickhouse/queries/replay/select-replay-gaps.ts'
import { selectReplayUnseededWindows } from '../../clickhouse/queries/replay/select-replay-unseeded-windows.ts'
import { selectSessionExists } from '../../clickhouse/queries/sessions/select-session-exists.ts'
import type { SessionKey } from '../../clickhouse/queries/sessions/session-key.ts'
import { type PageQuery, pageQuerySchema } from '../../schemas/http/page.ts'
import { REPLAY_FAULTS_MAX, type ReplayPage } from '../../schemas/http/replay/schemas.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { guardedRead, SESSIONS_GUARD, sessionNotFound } from '../http/guarded-read.ts'
import { parseQuery } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { decodeChunkPlace, encodeChunkPlace } from './chunk-place.ts'
import { presentChunk, presentGap } from './present-chunk.ts'

/** The chunks of a session's replay in reading order, page by page, and what is missing of it. */
export function readReplayRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/sessions/:sessionId/replay',
    bodyLimitBytes: 0,
    accept(head) {
      const sessionId = head.param('sessionId')
      const asked = { limit: head.query('limit'), cursor: head.query('cursor') }
      return guardedRead(deps, head.header('authorization'), SESSIONS_GUARD, async (workspaceId, signal) => {
        const query = parseQuery(pageQuerySchema, asked, 'api-analytics')
        if (!query.ok) return query
        if (!sessionIdSchema.safeParse(sessionId).success) return sessionNotFound
        return readReplay(deps, { workspaceId, sessionId }, query.value, signal)
      })
    },
  }
}

async function readReplay(
  { clickhouse }: ApiDeps,
  key: SessionKey,
  { limit, cursor }: PageQuery,
  signal: AbortSignal,
): Promise<Outcome<ReplayPage>> {
  const after = decodeChunkPlace(cursor)
  if (!after.ok) return after
  const [isKnown, rows, gaps, windows] = await Promise.all([
    selectSessionExists(clickhouse, key, signal),
    selectReplayChunks(clickhouse, { ...key, limit: limit + 1, after: after.value }, signal),
    selectReplayGaps(clickhouse, key, REPLAY_FAULTS_MAX + 1, signal),
    selectReplayUnseededWindows(clickhouse, key, REPLAY_FAULTS_MAX + 1, signal),
  ])
  if (!isKnown) return sessionNotFound
  const last = rows.length > limit ? rows[limit - 1] : undefined
  const value = {
    chunks: rows.slice(0, limit).map(presentChunk),
    nextCursor: last ? encodeChunkPlace(last) : null,
    gaps: gaps.slice(0, REPLAY_FAULTS_MAX).map(presentGap),
    missingFullSnapshots: windows.slice(0, REPLAY_FAULTS_MAX),
    truncated: gaps.length > REPLAY_FAULTS_MAX || windows.length > REPLAY_FAULTS_MAX,
  }
  return { ok: true, value }
}
