import type { RecordLine } from '../../shared/directory/export/lines.ts'
import { readExport } from '../../shared/directory/export/read-export.ts'
import { LineError } from '../../shared/directory/export/read-lines.ts'
import { releaseKeys } from '../../shared/directory/release-store.ts'
import { decideAndCommit } from '../../shared/directory/transaction.ts'
import type { DirectoryConnection } from '../command-context.ts'
import { type Plan, planLine } from './plan-import.ts'

/** Options of `importDirectory`. */
interface ImportOptions {
  /** Overwrites records that differ. */
  readonly replace: boolean
  /** Reads every line and changes nothing. */
  readonly dryRun: boolean
  readonly now: () => number
  /**
   * Receives a message for each record that is not stored, because it differs from the stored one or cannot be stored.
   */
  readonly onConflict: (message: string) => void
}

/** Number of records by outcome. */
export interface ImportOutcome {
  added: number
  unchanged: number
  replaced: number
  conflicts: number
}

/**
 * Stores the lines of an export in the directory, one after the other, each with its indexes in one transaction. A
 * record that exists already is kept. Throws a LineError if a line is invalid or the last line is missing. The lines
 * before it stay stored, and the import can be repeated.
 */
export async function importDirectory(
  directory: DirectoryConnection,
  pieces: AsyncIterable<Uint8Array>,
  options: ImportOptions,
): Promise<ImportOutcome> {
  const outcome: ImportOutcome = { added: 0, unchanged: 0, replaced: 0, conflicts: 0 }
  const seen: Seen = { workspaceIds: new Set(), refusedWorkspaceIds: new Set(), release: '' }
  for await (const { number, line } of readExport(pieces)) {
    const owner = await findOwner(directory, line, seen)
    if (owner.missing !== undefined) throw new LineError(`line ${number}: ${owner.missing}`)
    const result = owner.refusal ?? (await importLine(directory, line, options))
    remember(line, result, seen)
    if (result.outcome === 'conflicts') options.onConflict(`line ${number}: ${result.reason}`)
    outcome[result.outcome] += 1
  }
  return outcome
}

type Refused = { readonly outcome: 'conflicts'; readonly reason: string }
type LineOutcome = { readonly outcome: Exclude<keyof ImportOutcome, 'conflicts'> } | Refused

/** Results of the lines before the current one, which a dry run does not store. */
interface Seen {
  readonly workspaceIds: Set<string>
  readonly refusedWorkspaceIds: Set<string>
  /** Redis key of the release in the previous line. */
  release: string
}

function importLine({ redis }: DirectoryConnection, line: RecordLine, options: ImportOptions): Promise<LineOutcome> {
  return decideAndCommit<LineOutcome>(redis, async () => {
    const plan = await planLine(redis, line, options.now())
    const result = judge(plan, options.replace)
    return result.outcome === 'conflicts' || options.dryRun ? { result } : { result, transaction: plan }
  })
}

function judge({ found, name, refusal }: Plan, replace: boolean): LineOutcome {
  if (refusal !== undefined) return { outcome: 'conflicts', reason: refusal }
  if (found === 'absent') return { outcome: 'added' }
  // The record is written again, because its indexes may be missing.
  if (found === 'same') return { outcome: 'unchanged' }
  if (replace) return { outcome: 'replaced' }
  return { outcome: 'conflicts', reason: `${name} differs from the stored one` }
}

/**
 * Checks that the owner of a record is stored or comes before it. The records of a refused owner are refused as well.
 */
async function findOwner(
  { redis, store }: DirectoryConnection,
  line: RecordLine,
  seen: Seen,
): Promise<{ missing?: string; refusal?: Refused }> {
  if (line.kind === 'installation' || line.kind === 'receipt-secret') return {}
  if (line.kind === 'user' || line.kind === 'workspace') return {}
  const { workspaceId } = line.record
  if (!seen.workspaceIds.has(workspaceId)) {
    if (!(await store.workspaceById(workspaceId))) {
      if (!seen.refusedWorkspaceIds.has(workspaceId)) {
        return { missing: `there is no workspace ${JSON.stringify(workspaceId)}` }
      }
      return { refusal: { outcome: 'conflicts', reason: `${line.kind} of ${workspaceId}, which was refused` } }
    }
    seen.workspaceIds.add(workspaceId)
  }
  if (line.kind !== 'manifest') return {}
  const release = releaseKeys.release(workspaceId, line.record.releaseSlug)
  const exists = seen.release === release || (await redis.exists(release)) === 1
  return exists ? {} : { missing: `there is no release ${JSON.stringify(line.record.releaseSlug)}` }
}

function remember(line: RecordLine, { outcome }: LineOutcome, seen: Seen): void {
  if (line.kind === 'workspace') {
    const ids = outcome === 'conflicts' ? seen.refusedWorkspaceIds : seen.workspaceIds
    ids.add(line.record.id)
  }
  if (line.kind === 'release') seen.release = releaseKeys.release(line.record.workspaceId, line.record.slug)
}
