import { setTimeout as delay } from 'node:timers/promises'
import type { FindingMove } from '../../clickhouse/tables/finding-moves-table.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import {
  type ReceivedStack,
  type StackOwner,
  type SymbolicateStacksDeps,
  symbolicateEach,
} from './symbolicate-stacks.ts'

/** Time between two attempts. Another worker may be parsing the map. */
const RETRY_MS = 100

/** Dependencies of resolving new stacks. */
interface NewStacksDeps extends Pick<SymbolicateStacksDeps, 'manifests' | 'tracer' | 'rules'> {
  readonly selectSourceMaps: (
    ...args: [...Parameters<SymbolicateStacksDeps['selectSourceMaps']>, signal: AbortSignal]
  ) => ReturnType<SymbolicateStacksDeps['selectSourceMaps']>
  readonly logger: Logger
}

/** A stack of a batch of exceptions. */
type NewStack = ReceivedStack & StackOwner

/**
 * Resolves the stacks of batches of exceptions before these are stored. The symbolication that follows resolves them again, with
 * the maps that were parsed here, and stores their frames.
 */
export class NewStacks {
  readonly #deps: NewStacksDeps
  /** Workspaces whose last stack is still being resolved. It may be a map that takes a process half a minute. */
  readonly #busy = new Set<string>()

  constructor(deps: NewStacksDeps) {
    this.#deps = deps
  }

  /**
   * Reports the findings that the frames of stacks decide on, one by one. Begins no stack after the signal, and leaves out those of
   * a workspace while a stack of an earlier call is being resolved. Never rejects.
   */
  async resolve(stacks: readonly NewStack[], signal: AbortSignal, onMove: (move: FindingMove) => void): Promise<void> {
    const free = [...Map.groupBy(stacks, ({ workspaceId }) => workspaceId)].filter(([id]) => !this.#busy.has(id))
    await Promise.all(
      free.map(async ([workspaceId, own]) => {
        this.#busy.add(workspaceId)
        try {
          for (const ofSurface of Map.groupBy(own, ({ surfaceId }) => surfaceId).values()) {
            await this.#resolve(ofSurface, signal, onMove)
          }
        } catch (error) {
          this.#deps.logger.info({ workspaceId, ...errorFields(error) }, 'new stacks are resolved later')
        } finally {
          this.#busy.delete(workspaceId)
        }
      }),
    )
  }

  async #resolve(stacks: readonly NewStack[], signal: AbortSignal, onMove: (move: FindingMove) => void) {
    const [first] = stacks
    if (first === undefined) return
    const { manifests, tracer, rules, selectSourceMaps } = this.#deps
    const deps: SymbolicateStacksDeps = {
      manifests,
      rules,
      now: Date.now,
      selectSourceMaps: (owner, debugIds) => selectSourceMaps(owner, debugIds, signal),
      tracer: {
        trace: (map, positions) => tracer.trace(map, positions),
        hasTime: workspaceId => !signal.aborted && tracer.hasTime(workspaceId),
      },
      retryUntilStopped: (_, work) => retryUntil(signal, work),
    }
    const { workspaceId, surfaceId } = first
    for await (const { move } of symbolicateEach(deps, { workspaceId, surfaceId }, stacks)) {
      if (move !== undefined) onMove(move)
    }
  }
}

async function retryUntil<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted || !(error instanceof TransientError)) throw error
      await delay(RETRY_MS, undefined, { signal })
    }
  }
}
