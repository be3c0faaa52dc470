import type { Selection, Step } from '../../letters/select-page.ts'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { overShareProblem } from '../http/read-shares.ts'
import type { Conditions } from './present-letter.ts'
import { readCursor, selectionOf } from './selection.ts'

/** Dependencies of every step of a replay or a purge. */
export interface RunStepDeps {
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
export async function runStep<T>(
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
