import type { z } from 'zod'

/** A record in Redis that does not match its schema. The client did not cause it. */
export class DirectoryRecordError extends Error {
  override readonly name = 'DirectoryRecordError'
}

/**
 * Beginning of every key of the directory. The hash tag in braces keeps all of them on one node of a Redis Cluster, because
 * transactions change several at once.
 */
export const DIRECTORY_ROOT = 'penstock:{directory}'

/** Channel on which changes of credentials are published. The message is the digests of the keys, separated by spaces. */
export const CREDENTIAL_CHANGES_CHANNEL = `${DIRECTORY_ROOT}:credential-changes`

/**
 * The first words of the names of all records and indexes, after DIRECTORY_ROOT. The record of the installation is not one of them:
 * a backup that replaces the directory leaves it.
 */
const FAMILIES = new Set([
  ...['user', 'users', 'workspace', 'workspaces', 'workspace-slug', 'alerting'],
  ...['credential', 'workspace-credential', 'receipt-secret'],
])

/** Returns whether a key of the directory is a record or an index, and not a state of its processes. */
export function isRecordKey(key: string): boolean {
  return FAMILIES.has(key.slice(DIRECTORY_ROOT.length + 1).split(':', 1)[0] ?? '')
}

/** Parses the record of a Redis key. Throws a DirectoryRecordError. */
export function parseRecord<S extends z.ZodType>(key: string, text: string, schema: S): z.infer<S> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new DirectoryRecordError(`${key}: not JSON`, { cause: error })
  }
  const result = schema.safeParse(value)
  if (!result.success) throw new DirectoryRecordError(`${key}: ${result.error.message}`)
  return result.data
}

/**
 * Redis keys of the records and their indexes. An index by name is a sorted set whose scores are all 0, which is read in the
 * order of its bytes. An index by time is scored with Unix milliseconds.
 *
 * - user, workspace, member, surface, credential, workspaceCredential: one JSON record each (string)
 * - slug: workspace id (string)
 * - users, workspaces, members: ids by name
 * - surfaces: ids of the existing surfaces, by time
 * - surfaceIds: ids of existing and deleted surfaces, by name; rows and objects of a deleted surface remain
 * - deletedSurfaces: ids of deleted surfaces, by the time of deletion
 * - surfaceKeys: digests of a surface's keys (set)
 * - surfaceKeyEnds: digests of the surface keys of a workspace, scored with the time of their revocation or expiry, or +inf
 * - workspaceKeys: key ids by time
 * - workspaceKeyDigests: key id → digest (hash)
 * - workspaceKeyEnds: key ids, scored with the time of their revocation or expiry, or +inf
 * - creation: a creation that its client may repeat, as a JSON record (string, for 24 h)
 * - creations: ids of such creations, by the time at which they are not recognized any more
 * - erasure: one JSON record each (string)
 * - erasures: ids of erasures, by time
 * - activeErasures: hash of the subject → id of the erasure that is deleting (hash)
 * - dueErasures: erasures of all workspaces that are deleting as `workspace/id`, by time
 * - waitingErasures: those that wait for the night, in which days are written again, as `workspace/id`, by time
 * - receiptSecret: the secret that seals receipt ids, as a JSON record (string)
 * - installation: which stores belong together (shared/installation), as a JSON record (string)
 * - changes: who has changed what in a workspace, as JSON, by time
 * - managers: members with the permission org:members:write (set)
 * - findingWork: finding → what members have made of it, as a JSON record (hash)
 * - findingChanges: findings with such a record, by the time of their last change
 * - resolvedFindings: resolved findings, by the time of their resolution
 * - ignoredFindings: ignored findings, by the time at which they are open again, or +inf
 * - countedFindings: ignored findings that are open again after a number of occurrences (set)
 * - findingActivity: what was done with a finding, as JSON, by time
 * - findingMerges: finding → the finding that it is merged into, as its record has it (hash)
 * - findingActivityBytes: bytes of the activity of all findings of a workspace (string)
 * - findingRules: rules of grouping, as a JSON record (string)
 * - scrubbing: rules of scrubbing, as a JSON record (string)
 * - earlierScrubbing: the records before it, the latest first (list); a batch may be stored by them
 * - dropping: rules of dropping, as a JSON record (string)
 * - earlierDropping: the records before it, the latest first (list); a batch may be stored by them
 * - alerting: workspaces with receivers of alerts (set)
 * - alerts: receivers of alerts and their rules, as a JSON record (string)
 * - earlierAlerts: the records before it, the latest first (list)
 * - earlierFindingRules: the records before it, the latest first (list); a batch of exceptions may be stored by them
 */
export const directoryKeys = {
  user: (id: string) => `${DIRECTORY_ROOT}:user:${id}`,
  users: `${DIRECTORY_ROOT}:users`,
  receiptSecret: `${DIRECTORY_ROOT}:receipt-secret`,
  installation: `${DIRECTORY_ROOT}:installation`,
  workspace: (id: string) => `${DIRECTORY_ROOT}:workspace:${id}`,
  workspaces: `${DIRECTORY_ROOT}:workspaces`,
  slug: (slug: string) => `${DIRECTORY_ROOT}:workspace-slug:${slug}`,
  member: (workspaceId: string, userId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:member:${userId}`,
  members: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:members`,
  surface: (workspaceId: string, surfaceId: string) =>
    `${DIRECTORY_ROOT}:workspace:${workspaceId}:surface:${surfaceId}`,
  surfaces: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:surfaces`,
  surfaceIds: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:surface-ids`,
  deletedSurfaces: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:deleted-surfaces`,
  surfaceKeys: (workspaceId: string, surfaceId: string) =>
    `${DIRECTORY_ROOT}:workspace:${workspaceId}:surface:${surfaceId}:keys`,
  surfaceKeyEnds: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:surface-key-ends`,
  credential: (digest: string) => `${DIRECTORY_ROOT}:credential:${digest}`,
  workspaceCredential: (digest: string) => `${DIRECTORY_ROOT}:workspace-credential:${digest}`,
  erasure: (workspaceId: string, id: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:erasure:${id}`,
  erasures: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:erasures`,
  activeErasures: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:active-erasures`,
  dueErasures: `${DIRECTORY_ROOT}:due-erasures`,
  waitingErasures: `${DIRECTORY_ROOT}:waiting-erasures`,
  workspaceKeys: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:keys`,
  workspaceKeyDigests: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:key-digests`,
  workspaceKeyEnds: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:key-ends`,
  changes: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:changes`,
  managers: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:managers`,
  findingWork: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:finding-work`,
  findingChanges: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:finding-changes`,
  resolvedFindings: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:resolved-findings`,
  ignoredFindings: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:ignored-findings`,
  countedFindings: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:counted-findings`,
  findingActivity: (workspaceId: string, findingId: string) =>
    `${DIRECTORY_ROOT}:workspace:${workspaceId}:finding:${findingId}:activity`,
  findingMerges: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:finding-merges`,
  findingActivityBytes: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:finding-activity-bytes`,
  findingRules: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:finding-rules`,
  earlierFindingRules: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:earlier-finding-rules`,
  scrubbing: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:scrubbing`,
  earlierScrubbing: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:earlier-scrubbing`,
  dropping: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:dropping`,
  earlierDropping: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:earlier-dropping`,
  alerting: `${DIRECTORY_ROOT}:alerting`,
  alerts: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:alerts`,
  earlierAlerts: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:earlier-alerts`,
  creation: (workspaceId: string, id: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:creation:${id}`,
  creations: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:creations`,
}

/**
 * Redis keys of the source maps of a workspace, by the 32 bytes of their SHA-256.
 *
 * - stored: maps whose objects are known to be stored (set)
 * - unused: maps that no manifest and no upload names, by the time at which that was found; never in `stored` (sorted set)
 */
export const mapKeys = {
  stored: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:stored-maps`,
  unused: (workspaceId: string) => `${DIRECTORY_ROOT}:workspace:${workspaceId}:unused-maps`,
}

/**
 * Redis keys of the work of the upkeep, which an export does not contain.
 *
 * - erasedSessions: ids of the sessions of an erasure in progress (set)
 * - mergeVersions: workspace → a text that changes with each merge and split of its findings (hash)
 * - lease: id of the process that is elected for a task, with an expiry (string)
 * - deletedMap: the run that is deleting the object of this map, with an expiry (string)
 * - done: task → time when it was done last, in Unix ms (hash)
 * - judged: until when failed spans are judged, and the window that is in progress (string)
 * - edges-before: the arrival in Unix ms before which calls between services are counted (string)
 * - occasions: what receivers may be called for, as JSON records, in the order in which it was found (list)
 * - occasionsPage: how many of the first occasions are being called for, so that a crash repeats the same messages (string)
 * - watched: `workspace/surface` and `workspace/surface/failures` → the arrival in Unix ms before which occasions were found (hash)
 * - called: finding → the status of its record for whose end an occasion was found (hash)
 * - measured: a digest of a rule and its kind → the conditions that hold, until which instant, as JSON (hash, for a day)
 * - attempts: the last attempts to send alerts of a workspace, as JSON records, the latest first (list)
 * - order: the deliveries of a `receiver/finding` that have not ended, by the time at which they were queued (sorted set)
 * - holding: `[workspace, receiver, rule]` as JSON whose events wait, by the time in Unix ms at which they are due
 * - held: the events that wait for one of them, as JSON (list)
 * - messaged: `[workspace, receiver, rule]` → when it was sent something last, in Unix ms (string, for a day)
 * - deliveries: the jobs of BullMQ that send alerts (alerts/calling/)
 * - removedReleases: expired releases whose manifests and claims are still to be removed (set)
 * - queuesSeen: the last check that found the data of the queues, as JSON (string)
 * - ungrouped: workspace → why stored exceptions are to be grouped again by its rules, a text that is new each time (hash)
 */
export const upkeepKeys = {
  erasedSessions: (workspaceId: string, id: string) =>
    `${DIRECTORY_ROOT}:workspace:${workspaceId}:erasure:${id}:sessions`,
  deletedMap: (workspaceId: string, sha256: string) => `${DIRECTORY_ROOT}:upkeep:deleted-map:${workspaceId}:${sha256}`,
  mergeVersions: `${DIRECTORY_ROOT}:upkeep-merge-versions`,
  lease: (task: string) => `${DIRECTORY_ROOT}:upkeep:${task}`,
  done: `${DIRECTORY_ROOT}:upkeep-done`,
  judged: `${DIRECTORY_ROOT}:upkeep-judged`,
  edgesBefore: `${DIRECTORY_ROOT}:upkeep-edges-before`,
  occasions: `${DIRECTORY_ROOT}:upkeep-occasions`,
  occasionsPage: `${DIRECTORY_ROOT}:upkeep-occasions-page`,
  watched: `${DIRECTORY_ROOT}:upkeep-watched`,
  called: (workspaceId: string) => `${DIRECTORY_ROOT}:upkeep:called:${workspaceId}`,
  measured: (workspaceId: string) => `${DIRECTORY_ROOT}:upkeep:measured:${workspaceId}`,
  attempts: (workspaceId: string) => `${DIRECTORY_ROOT}:upkeep:attempts:${workspaceId}`,
  holding: `${DIRECTORY_ROOT}:upkeep-holding`,
  held: (member: string) => `${DIRECTORY_ROOT}:upkeep:held:${member}`,
  messaged: (member: string) => `${DIRECTORY_ROOT}:upkeep:messaged:${member}`,
  deliveries: (part: string) => `${DIRECTORY_ROOT}:upkeep:deliveries:${part}`,
  order: (of: string) => `${DIRECTORY_ROOT}:upkeep:order:${of}`,
  removedReleases: `${DIRECTORY_ROOT}:upkeep-removed-releases`,
  queuesSeen: `${DIRECTORY_ROOT}:upkeep-queues-seen`,
  ungrouped: `${DIRECTORY_ROOT}:upkeep-ungrouped`,
}
