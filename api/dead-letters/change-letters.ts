import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { LetterClaims } from '../../letters/letter-claims.ts'
import { purgeLetters } from '../../letters/purge-letters.ts'
import type { ReplayJobs } from '../../letters/replay-jobs.ts'
import { replayLetters } from '../../letters/replay-letters.ts'
import type { Selection, Step } from '../../letters/select-page.ts'
import {
  type LettersPurged,
  type LettersReplayed,
  purgeDeadLetters,
  purgeLettersSchema,
  replayDeadLetters,
  replayLettersSchema,
} from '../../schemas/http/dead-letters.ts'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { authorOf, queryDirectory } from '../http/directory.ts'
import { type Outcome, okReply } from '../http/outcome.ts'
import { overShareProblem } from '../http/read-shares.ts'
import { type Conditions, cursorOf, DEAD_LETTERS, presentSkipped, readCursor, selectionOf } from './present-letter.ts'

interface Deps extends CreationRouteDeps, RunStepDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'addChange'>
  readonly letterClaims: LetterClaims
  readonly letterObjects: Pick<ObjectStore, 'head' | 'get' | 'put' | 'deleteMany'>
  readonly now: () => number
  readonly objects: Pick<ObjectStore, 'getStream'>
  readonly replayJobs: Pick<ReplayJobs, 'add'>
}

/** Returns the routes that replay and purge dead letters, one step a call (docs/api/dead-letters.md#replay-letters). */
export function letterChangeRoutes(deps: Deps): Route[] {
  return [replayDeadLettersRoute(deps), purgeDeadLettersRoute(deps)]
}

const NO_ROOM: Problem = {
  code: 'INGEST_BACKPRESSURE',
  message: 'the queues have no room for replays: repeat the request after the delay',
  retryAfterSeconds: 1,
}

/** Returns the route that replays dead letters, one step a call (docs/api/dead-letters.md#replay-letters). */
function replayDeadLettersRoute(deps: Deps): Route {
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

/** Returns the route that purges dead letters, one step a call (docs/api/dead-letters.md#replay-letters). */
function purgeDeadLettersRoute(deps: Deps): Route {
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

/** Dependencies of every step of a replay or a purge. */
interface RunStepDeps {
  /** Bounds how many steps are in memory at once (docs/api/backpressure.md#read-shares). */
  readonly letterSteps: Pick<FairSlots, 'acquire'>
  readonly queryTimeoutMs: number
}

/** A step as its caller requests it. */
interface RequestedStep {
  readonly operation: PermittedOperation
  readonly workspaceId: string
  readonly body: {
    readonly ids?: readonly string[] | undefined
    readonly filter?: Conditions | undefined
    readonly cursor?: string | undefined
    readonly limit: number
  }
}

/** Runs one step within the share of its workspace, or refuses it if its body is invalid or it has no turn in time. */
async function runStep<T>(
  { letterSteps, queryTimeoutMs }: RunStepDeps,
  { operation, workspaceId, body }: RequestedStep,
  run: (selection: Selection, step: Step, signal: AbortSignal) => Promise<T>,
): Promise<Outcome<T>> {
  const after = readCursor(body.cursor)
  if (!after.ok) return after
  const selection = selectionOf(body)
  if (!selection.ok) return selection
  const signal = AbortSignal.timeout(queryTimeoutMs)
  const slot = await letterSteps.acquire(workspaceId, signal)
  if (slot === undefined) return { ok: false, problem: overShareProblem(TOO_MANY, operation) }
  try {
    const step = { after: after.value, limit: body.limit }
    return { ok: true, value: await queryDirectory(run(selection.value, step, signal)) }
  } finally {
    slot.release()
  }
}

const TOO_MANY = 'the workspace has too many replays and purges of dead letters in progress'
