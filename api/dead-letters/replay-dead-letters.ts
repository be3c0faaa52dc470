import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { LetterClaims } from '../../letters/letter-claims.ts'
import type { ReplayJobs } from '../../letters/replay-jobs.ts'
import { replayLetters } from '../../letters/replay-letters.ts'
import { type LettersReplayed, replayDeadLetters, replayLettersSchema } from '../../schemas/http/dead-letters.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { Route } from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { type Outcome, okReply } from '../http/outcome.ts'
import { presentSkipped } from './present-letter.ts'
import { DEAD_LETTERS } from './resource.ts'
import { type RunStepDeps, runStep } from './run-step.ts'
import { cursorOf } from './selection.ts'

interface Deps extends CreationRouteDeps, RunStepDeps {
  readonly clickhouse: ClickHouseClient
  readonly letterClaims: LetterClaims
  readonly now: () => number
  readonly objects: Pick<ObjectStore, 'getStream'>
  readonly replayJobs: Pick<ReplayJobs, 'add'>
}

const NO_ROOM: Problem = {
  code: 'INGEST_BACKPRESSURE',
  message: 'the queues have no room for replays: repeat the request after the delay',
  retryAfterSeconds: 1,
}

/** Returns the route that replays dead letters, one step a call (docs/api/dead-letters.md#replay-letters). */
export function replayDeadLettersRoute(deps: Deps): Route {
  const { clickhouse, letterClaims: claims, now, objects, replayJobs: jobs } = deps
  return creationRoute(deps, replayDeadLetters, {
    resource: DEAD_LETTERS,
    body: replayLettersSchema,
    reply: okReply,
    async create({ caller: { workspaceId }, body }): Promise<Outcome<LettersReplayed>> {
      const stepDeps = { clickhouse, objects, claims, jobs, now }
      const requested = { operation: replayDeadLetters, workspaceId, body }
      const done = await runStep(deps, requested, (selection, step, signal) =>
        replayLetters(stepDeps, workspaceId, selection, step, signal),
      )
      if (!done.ok) return done
      const { replayed, skipped, next, isBusy } = done.value
      if (isBusy && replayed === 0) return { ok: false, problem: NO_ROOM }
      const nextCursor = next ? cursorOf(next.after) : null
      return { ok: true, value: { replayed, skipped: presentSkipped(skipped), nextCursor } }
    },
  })
}
