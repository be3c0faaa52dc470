import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { RuleKind, RuleRevisions } from '../queue/payloads/batch-record.ts'
import type { RowBatch } from './row-batch.ts'

/** Rules of workspaces, each with a revision. 0 is that of a workspace without rules of its own. */
export interface KnownRules<T> {
  /** Returns the rules of a workspace, or those with this revision. Throws TransientErrors. */
  of(workspaceId: string, revision?: number): Promise<T>
}

/** The rules by which the rows of a batch are made: those of a workspace do not change while it is formed. */
export class WorkspaceRules<T extends { readonly revision: number }> {
  readonly #known: KnownRules<T>
  readonly #rules = new Map<string, T>()
  /** Workspaces that the last job has brought. */
  #added: string[] = []

  constructor(known: KnownRules<T>) {
    this.#known = known
  }

  /** Revisions by workspace, without those that have no rules. */
  get revisions(): Readonly<Record<string, number>> {
    const used = [...this.#rules].filter(([, { revision }]) => revision > 0)
    return Object.fromEntries(used.map(([workspaceId, { revision }]) => [workspaceId, revision]))
  }

  /** Revisions of all workspaces of the batch. */
  get allRevisions(): ReadonlyMap<string, number> {
    return new Map([...this.#rules].map(([id, { revision }]) => [id, revision]))
  }

  of(workspaceId: string): T | undefined {
    return this.#rules.get(workspaceId)
  }

  /** Reads the rules for these requests. A batch that is formed again has those of its record. Throws TransientErrors. */
  async prepare(frames: readonly PayloadFrame[], recorded?: Readonly<Record<string, number>>): Promise<void> {
    this.#added = []
    try {
      for (const { workspaceId } of frames) {
        if (this.#rules.has(workspaceId)) continue
        const revision = recorded === undefined ? undefined : (recorded[workspaceId] ?? 0)
        this.#rules.set(workspaceId, await this.#known.of(workspaceId, revision))
        this.#added.push(workspaceId)
      }
    } catch (error) {
      this.rewindJob()
      throw error
    }
  }

  /** Forgets the workspaces that only the last job had, which is not in the batch. */
  rewindJob(): void {
    for (const workspaceId of this.#added) this.#rules.delete(workspaceId)
    this.#added = []
  }

  reset(): void {
    this.#rules.clear()
  }
}

type AnyRules = WorkspaceRules<{ readonly revision: number }>

/** Returns rows that are made by kinds of rules, which are forgotten with the rows. */
export function withRules(rows: RowBatch, kinds: Readonly<Partial<Record<RuleKind, AnyRules>>>): RowBatch {
  const entries = Object.entries(kinds) as [RuleKind, AnyRules][]
  const each = (change: (rules: AnyRules) => void) => {
    for (const [, rules] of entries) change(rules)
  }
  const reset = rows.reset.bind(rows)
  const shrink = rows.shrink.bind(rows)
  const rewindJob = rows.rewindJob.bind(rows)
  return Object.assign(rows, {
    async prepare(frames: readonly PayloadFrame[], recorded?: RuleRevisions) {
      const prepared: AnyRules[] = []
      try {
        for (const [kind, rules] of entries) {
          await rules.prepare(frames, recorded && (recorded[kind] ?? {}))
          prepared.push(rules)
        }
      } catch (error) {
        for (const rules of prepared) rules.rewindJob()
        throw error
      }
    },
    rules: () =>
      Object.fromEntries(
        entries
          .map(([kind, { revisions }]) => [kind, revisions] as const)
          .filter(([, revisions]) => Object.keys(revisions).length > 0),
      ),
    rewindJob() {
      rewindJob()
      each(rules => rules.rewindJob())
    },
    reset() {
      reset()
      each(rules => rules.reset())
    },
    shrink() {
      shrink()
      each(rules => rules.reset())
    },
  })
}
