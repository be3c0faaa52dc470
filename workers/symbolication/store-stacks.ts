import type { FindingFramesRow } from '../../clickhouse/tables/finding-frames-table.ts'
import { type FindingMove, revisionOf } from '../../clickhouse/tables/finding-moves-table.ts'
import type { KnownRules } from '../exceptions/known-rules.ts'
import type { StackOwner, SymbolicatedStacks } from './symbolicate-stacks.ts'

/** Dependencies of `storeStacks`. */
export interface StoreStacksDeps {
  /** Repeats work that fails with a TransientError until it succeeds or the worker stops. */
  readonly retryUntilStopped: <T>(what: string, work: () => Promise<T>) => Promise<T>
  /** Stores rows. A repeated call with the same token adds nothing. */
  readonly insertFrames: (rows: readonly FindingFramesRow[], token: string) => Promise<void>
  readonly insertMoves: (rows: readonly FindingMove[]) => Promise<void>
  readonly rules: KnownRules
}

/**
 * Stores the frames of stacks, and moves their variants to the findings that the frames decide on. A row that is stored twice, or
 * has a lower rank than the one before, changes nothing.
 */
export async function storeStacks(
  deps: StoreStacksDeps,
  owner: StackOwner,
  { rows, moves }: Pick<SymbolicatedStacks, 'rows' | 'moves'>,
  token: string,
): Promise<void> {
  await deps.retryUntilStopped('store frames', () => deps.insertFrames(rows, token))
  if (moves.length === 0) return
  await deps.retryUntilStopped('move findings', () => deps.insertMoves(moves))
  const revision = Math.min(...moves.map(({ rank }) => revisionOf(rank)))
  await deps.retryUntilStopped('compare rules', () => deps.rules.stored(new Map([[owner.workspaceId, revision]])))
}
