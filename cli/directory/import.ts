import { releaseKeys } from '../../shared/directory/release-store.ts'
import { decideAndCommit } from '../../shared/directory/transaction.ts'
import type { DirectoryConnection } from '../command-context.ts'
import { parseLine } from './lines.ts'
import { type Plan, planLine, type RecordLine } from './plan-import.ts'
import { LineError, readLines } from './read-lines.ts'

export interface ImportOptions {
  /** Overwrite records that differ. */
  readonly replace: boolean
  /** Look at every line, and change nothing. */
  readonly dryRun: boolean
  readonly now: () => number
  /** Told of each record that is left as it is because it differs, or that cannot be taken here. */
  readonly onConflict: (message: string) => void
}

/** Records by what became of them. */
export interface ImportOutcome {
  added: number
  unchanged: number
  replaced: number
  conflicts: number
}

const LINE_LIMIT_BYTES = 4 * 1024 * 1024

/**
 * Puts the lines of an export into the directory, one after the other, each with its indexes in one step; a record
 * that is there already stays. Throws a LineError for a line that is not one, and for a text without its last line: what
 * came before stays, and the whole may be imported again.
 */
export async function importDirectory(
  directory: DirectoryConnection,
  pieces: AsyncIterable<Uint8Array>,
  options: ImportOptions,
): Promise<ImportOutcome> {
  const outcome: ImportOutcome = { added: 0, unchanged: 0, replaced: 0, conflicts: 0 }
  const seen: Seen = { workspaceIds: new Set(), refusedWorkspaceIds: new Set(), release: '' }
  let records = 0
  let isWhole = false
  for await (const { number, text } of readLines(pieces, LINE_LIMIT_BYTES)) {
    const parsed = parseLine(text)
    if (!parsed.ok) throw new LineError(`line ${number}: ${parsed.reason}`)
    if (isWhole) throw new LineError(`line ${number}: comes after the end`)
    const { line } = parsed
    if (line.kind === 'end') {
      if (line.record.records !== records) {
        throw new LineError(`line ${number}: ${line.record.records} records should come before it, not ${records}`)
      }
      isWhole = true
      continue
    }
    records += 1
    const owner = await findOwner(directory, line, seen)
    if (owner.missing !== undefined) throw new LineError(`line ${number}: ${owner.missing}`)
    const result = owner.refusal ?? (await importLine(directory, line, options))
    remember(line, result, seen)
    if (result.outcome === 'conflicts') options.onConflict(`line ${number}: ${result.reason}`)
    outcome[result.outcome] += 1
  }
  if (!isWhole) throw new LineError(`the last line is missing ({"kind":"end",…}): the text is not whole`)
  return outcome
}

type Refused = { readonly outcome: 'conflicts'; readonly reason: string }
type LineOutcome = { readonly outcome: Exclude<keyof ImportOutcome, 'conflicts'> } | Refused

/** What came of lines before this one: in a dry run the store does not have it. */
interface Seen {
  readonly workspaceIds: Set<string>
  readonly refusedWorkspaceIds: Set<string>
  /** Where the release of the line before is. */
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
  // Written again: its indexes may be missing.
  if (found === 'same') return { outcome: 'unchanged' }
  if (replace) return { outcome: 'replaced' }
  return { outcome: 'conflicts', reason: `${name} differs from the one that is there` }
}

/** What a record belongs to must be there, or come before it; what was refused takes along what belongs to it. */
async function findOwner(
  { redis, store }: DirectoryConnection,
  line: RecordLine,
  seen: Seen,
): Promise<{ missing?: string; refusal?: Refused }> {
  if (line.kind === 'receipt-secret' || line.kind === 'user' || line.kind === 'workspace') return {}
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
  const isThere = seen.release === release || (await redis.exists(release)) === 1
  return isThere ? {} : { missing: `there is no release ${JSON.stringify(line.record.releaseSlug)}` }
}

function remember(line: RecordLine, { outcome }: LineOutcome, seen: Seen): void {
  if (line.kind === 'workspace') {
    const ids = outcome === 'conflicts' ? seen.refusedWorkspaceIds : seen.workspaceIds
    ids.add(line.record.id)
  }
  if (line.kind === 'release') seen.release = releaseKeys.release(line.record.workspaceId, line.record.slug)
}
