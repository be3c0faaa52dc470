import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { LetterClaims } from '../../letters/letter-claims.ts'
import { purgeLetters } from '../../letters/purge-letters.ts'
import { purgeDeadLetters } from '../../schemas/http/dead-letters/operations.ts'
import { type LettersPurged, purgeLettersSchema } from '../../schemas/http/dead-letters/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { type Outcome, okReply } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { presentSkipped } from './present-letter.ts'
import { DEAD_LETTERS } from './resource.ts'
import { cursorOf, readCursor, selectionOf } from './selection.ts'

interface Deps extends CreationRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly letterClaims: LetterClaims
  readonly now: () => number
  readonly letterObjects: Pick<ObjectStore, 'get' | 'put' | 'deleteMany'>
  readonly queryTimeoutMs: number
}

/** Returns the route that purges dead letters, one step a call (docs/contract.md#replay-letters). */
export function purgeDeadLettersRoute(deps: Deps): Route {
  const { clickhouse, letterClaims: claims, now, letterObjects: objects } = deps
  return creationRoute(deps, purgeDeadLetters, {
    resource: DEAD_LETTERS,
    body: purgeLettersSchema,
    reply: okReply,
    async create({ caller: { workspaceId }, body }): Promise<Outcome<LettersPurged>> {
      const after = readCursor(body.cursor)
      if (!after.ok) return after
      const selection = selectionOf(body)
      if (!selection.ok) return selection
      const step = { after: after.value, limit: body.limit }
      const signal = AbortSignal.timeout(deps.queryTimeoutMs)
      const stepDeps = { clickhouse, objects, claims, now }
      const done = await queryDirectory(purgeLetters(stepDeps, workspaceId, selection.value, step, signal))
      const nextCursor = done.next ? cursorOf(done.next.after) : null
      return { ok: true, value: { purged: done.purged, skipped: presentSkipped(done.skipped), nextCursor } }
    },
  })
}
