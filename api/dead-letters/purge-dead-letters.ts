import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { LetterClaims } from '../../letters/letter-claims.ts'
import { purgeLetters } from '../../letters/purge-letters.ts'
import { type LettersPurged, purgeDeadLetters, purgeLettersSchema } from '../../schemas/http/dead-letters.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { authorOf } from '../http/author-of.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { type Outcome, okReply } from '../http/outcome.ts'
import { presentSkipped } from './present-letter.ts'
import { DEAD_LETTERS } from './resource.ts'
import { type RunStepDeps, runStep } from './run-step.ts'
import { cursorOf } from './selection.ts'

interface Deps extends CreationRouteDeps, RunStepDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'addChange'>
  readonly letterClaims: LetterClaims
  readonly now: () => number
  readonly letterObjects: Pick<ObjectStore, 'head' | 'get' | 'put' | 'deleteMany'>
}

/** Returns the route that purges dead letters, one step a call (docs/api/dead-letters.md#replay-letters). */
export function purgeDeadLettersRoute(deps: Deps): Route {
  const { clickhouse, letterClaims: claims, now, letterObjects: objects } = deps
  return creationRoute(deps, purgeDeadLetters, {
    resource: DEAD_LETTERS,
    body: purgeLettersSchema,
    reply: okReply,
    async create({ caller, body }): Promise<Outcome<LettersPurged>> {
      const { workspaceId } = caller
      const change = { action: 'dead-letters.purged', subject: '' } as const
      const stepDeps = { clickhouse, objects, claims, now }
      const requested = { operation: purgeDeadLetters, workspaceId, body }
      const done = await runStep(deps, requested, async (selection, step, signal) => {
        await deps.directory.addChange(workspaceId, authorOf(caller, now()), change)
        return purgeLetters(stepDeps, workspaceId, selection, step, signal)
      })
      if (!done.ok) return done
      const { purged, skipped, next } = done.value
      const nextCursor = next ? cursorOf(next.after) : null
      return { ok: true, value: { purged, skipped: presentSkipped(skipped), nextCursor } }
    },
  })
}
