import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectRecurrences } from '../../../clickhouse/queries/findings/select-recurrences.ts'
import { selectVersions } from '../../../clickhouse/queries/findings/select-versions.ts'
import { versionDigest } from '../../../findings/standing.ts'
import type { ChangeFinding } from '../../../schemas/http/findings/work.ts'
import { type FindingWork, KNOWN_VERSIONS_MAX } from '../../../schemas/records/finding-work.ts'
import type { Once } from '../../../shared/directory/creations.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { ACTIVITY_BYTES_MAX, type FindingOfWorkspace } from '../../../shared/directory/findings/activity.ts'
import { queryDirectory } from '../../http/directory.ts'
import { dayOf, rfc3339FromUnixMs } from '../../http/format-time.ts'
import { invalid, type Outcome } from '../../http/outcome.ts'
import { type ExistingFinding, makeRoom, type RoomDeps, TOO_MANY_FINDINGS } from './change-route.ts'

/** Stores that {@link commitChange} changes. */
export interface CommitDeps extends RoomDeps {
  readonly directory: RoomDeps['directory'] & Pick<Directory, 'changeFinding'>
}

const TOO_MANY_COMMENTS = invalid(
  `the comments and the other activity of a workspace can have at most ${ACTIVITY_BYTES_MAX} bytes`,
)

/** Changes a finding. If the workspace has too many records, room is made, and the change is tried again. */
export async function commitChange(
  deps: CommitDeps,
  finding: FindingOfWorkspace,
  at: string,
  change: Parameters<Directory['changeFinding']>[2],
  signal: AbortSignal,
  once?: Once,
): Promise<Outcome<FindingWork>> {
  const commit = () => queryDirectory(deps.directory.changeFinding(finding, at, change, once))
  let outcome = await commit()
  if (outcome === 'too_many_findings' && (await makeRoom(deps, finding.workspaceId, signal))) outcome = await commit()
  if (outcome === 'too_many_findings') return TOO_MANY_FINDINGS
  return outcome === 'too_many_comments' ? TOO_MANY_COMMENTS : { ok: true, value: outcome }
}

type NewStatus = Pick<FindingWork, 'status' | 'statusAt' | 'knownVersions' | 'until' | 'occurrences' | 'countedBefore'>

/** A status, and for how long a finding is ignored. */
type ChosenStatus = Pick<ChangeFinding, 'ignoreUntil' | 'ignoreOccurrences'> & Pick<FindingWork, 'status'>

/** Returns the status that a change chooses, with what has occurred so far as far as the status depends on it. */
export async function newStatus(
  clickhouse: ClickHouseClient,
  finding: ExistingFinding,
  { status, ignoreUntil, ignoreOccurrences }: ChosenStatus,
  nowMs: number,
  signal: AbortSignal,
): Promise<NewStatus> {
  const chosen = { status, statusAt: rfc3339FromUnixMs(nowMs) }
  if (status === 'resolved') {
    const versions = await selectVersions(clickhouse, finding, KNOWN_VERSIONS_MAX, signal)
    return { ...chosen, knownVersions: versions.map(versionDigest) }
  }
  if (status === 'open') return chosen
  const until = ignoreUntil === undefined ? {} : { until: rfc3339FromUnixMs(Date.parse(ignoreUntil)) }
  if (ignoreOccurrences === undefined) return { ...chosen, ...until }
  const today = [{ findingId: finding.findingId, day: dayOf(nowMs) }]
  const [counted] = await selectRecurrences(clickhouse, finding, today, signal)
  const countedBefore = Number(counted?.occurrenceCount ?? 0)
  return { ...chosen, ...until, occurrences: ignoreOccurrences, countedBefore }
}

/** Replaces the status of a record, with everything that belongs to the previous one. */
export function withStatus(work: FindingWork, status: NewStatus): FindingWork {
  const { knownVersions: _, until: _until, occurrences: _occurrences, countedBefore: _counted, ...rest } = work
  return { ...rest, ...status }
}
