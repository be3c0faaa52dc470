import type { StoredVariant } from '../../clickhouse/queries/findings/select-stored-variants.ts'
import type { FindingMove } from '../../clickhouse/tables/finding-moves-table.ts'
import type { FindingRulesStore, UngroupedWorkspace } from '../../shared/directory/findings/finding-rules-store.ts'
import { groupStored } from '../../shared/grouping/group-exception.ts'
import { type CompiledRules, compileRules, NO_RULES } from '../../shared/grouping/rules.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** Variants of a page. Their stacks and frames are in memory at once. */
const PAGE_VARIANTS = 200

/** Dependencies of grouping what is stored. */
export interface GroupStoredDeps {
  readonly directory: Pick<FindingRulesStore, 'findingRules' | 'ungrouped' | 'grouped'>
  readonly selectVariants: (
    workspaceId: string,
    page: { readonly after: string; readonly limit: number },
  ) => Promise<{ readonly variants: readonly StoredVariant[]; readonly last: string | undefined }>
  readonly insertMoves: (rows: readonly FindingMove[]) => Promise<void>
  readonly logger: Logger
  /** Throws when this process is stopping or is not elected any more. Runs between two steps. */
  readonly assertElected: () => Promise<void>
}

interface Position extends UngroupedWorkspace {
  readonly rules: CompiledRules
  /** The last variant that was looked at. */
  readonly after: string
  readonly moved: number
}

/**
 * Groups the stored exceptions of workspaces whose rules have changed, a page of each in turn. A variant moves to the finding of
 * its latest exception. It may be interrupted anywhere: the next run begins again with what is not noted as grouped, and what has
 * moved does not move twice. Throws the errors of the stores.
 */
export async function groupAllStored(deps: GroupStoredDeps): Promise<void> {
  const positions = new Map<string, Position>()
  for (;;) {
    const ungrouped = await deps.directory.ungrouped()
    if (ungrouped.length === 0) return
    for (const workspace of ungrouped) {
      await deps.assertElected()
      const { workspaceId, token } = workspace
      let position = positions.get(workspaceId)
      if (position?.token !== token) {
        // Read after the token: rows by earlier rules are stored before the token is.
        const record = await deps.directory.findingRules(workspaceId)
        const rules = record === undefined ? NO_RULES : compileRules(record)
        position = { workspaceId, token, rules, after: '', moved: 0 }
      }
      const next = await groupPage(deps, position)
      positions.set(workspaceId, next)
      if (next.after !== '') continue
      await deps.directory.grouped(next)
      const { moved, rules } = next
      deps.logger.info({ workspaceId, revision: rules.revision, moved }, 'stored exceptions are grouped')
    }
  }
}

/** Groups a page. Returns where the next one begins, with an empty `after` if there is none. */
async function groupPage(deps: GroupStoredDeps, position: Position): Promise<Position> {
  const { workspaceId, rules, after } = position
  const { variants, last = '' } = await deps.selectVariants(workspaceId, { after, limit: PAGE_VARIANTS })
  const moves = variants.flatMap(variant => movesOf(workspaceId, variant, rules))
  if (moves.length > 0) await deps.insertMoves(moves)
  return { ...position, after: last, moved: position.moved + moves.length }
}

/** Returns the row that moves a variant which belongs to another finding. */
function movesOf(workspaceId: string, variant: StoredVariant, rules: CompiledRules): FindingMove[] {
  const { variantId } = variant
  const { findingId } = groupStored({ workspaceId, ...variant }, rules)
  const rank = BigInt(variant.framesRank) + BigInt(rules.revision)
  // Later maps have decided on another finding meanwhile. Rules are compared then, too.
  if (findingId === variant.findingId || rank <= BigInt(variant.rank)) return []
  return [{ workspaceId, variantId, findingId, rank }]
}
