import type { Redis } from 'ioredis'
import type { z } from 'zod'
import { alertsSchema } from '../../schemas/records/alerts.ts'
import { creationSchema } from '../../schemas/records/creation.ts'
import {
  manifestPointerSchema,
  memberSchema,
  type Release,
  receiptSecretSchema,
  releaseSchema,
  surfaceKeySchema,
  surfaceSchema,
  userSchema,
  type WorkspaceKey,
  workspaceKeySchema,
  workspaceSchema,
} from '../../schemas/records/directory.ts'
import { droppingSchema } from '../../schemas/records/dropping.ts'
import { erasureSchema } from '../../schemas/records/erasure.ts'
import { findingRulesSchema } from '../../schemas/records/finding-rules.ts'
import { findingWorkSchema } from '../../schemas/records/finding-work.ts'
import { scrubbingSchema } from '../../schemas/records/scrubbing.ts'
import { writeAlerts } from '../../shared/directory/alerts-store.ts'
import { textOf } from '../../shared/directory/changes/bounded-log.ts'
import { importChanges } from '../../shared/directory/changes/change-log.ts'
import { NOTHING, writeCreation } from '../../shared/directory/creations.ts'
import { writeDropping } from '../../shared/directory/dropping-store.ts'
import { writeErasure } from '../../shared/directory/erasures.ts'
import type {
  ChangesLine,
  FindingWorkLine,
  ManifestLine,
  RecordLine,
  StoredMapsLine,
} from '../../shared/directory/export/lines.ts'
import { writeFindingRules } from '../../shared/directory/findings/finding-rules-store.ts'
import { findingWorkText, importFindingWork } from '../../shared/directory/findings/write-finding-work.ts'
import { directoryKeys } from '../../shared/directory/record.ts'
import { releaseKeys } from '../../shared/directory/release-store.ts'
import { writeScrubbing } from '../../shared/directory/scrubbing-store.ts'
import type { Command, DirectoryTransaction, Guard } from '../../shared/directory/transaction.ts'
import {
  type RecordWrite,
  writeMember,
  writePointer,
  writeReceiptSecret,
  writeRelease,
  writeStoredMaps,
  writeSurface,
  writeSurfaceKey,
  writeUser,
  writeWorkspace,
  writeWorkspaceKey,
} from '../../shared/directory/writes.ts'
import { parseJson } from '../../shared/json/parse-json.ts'

/** How a record of an export compares with the stored one, and the transaction that would store it. */
export interface Plan extends DirectoryTransaction {
  readonly found: 'absent' | 'same' | 'differs'
  /** Name of the record in messages. */
  readonly name: string
  /** The reason why the record cannot be stored, not even with `--replace`. */
  readonly refusal?: string | undefined
}

/**
 * Compares a record with the stored one and plans the transaction that stores it. `now` is in Unix milliseconds. The record of the
 * installation is not stored: an import adds to another one, whose stores have its own id.
 */
export async function planLine(redis: Redis, line: RecordLine, now: number): Promise<Plan> {
  switch (line.kind) {
    case 'installation':
      return { found: 'same', name: 'the installation', ...NOTHING }
    case 'receipt-secret':
      return planRecord(redis, 'the receipt secret', writeReceiptSecret(line.record), receiptSecretSchema)
    case 'user':
      return planRecord(redis, `user ${JSON.stringify(line.record.id)}`, writeUser(line.record), userSchema)
    case 'workspace':
      return planWorkspace(redis, line.record)
    case 'member': {
      const { userId, workspaceId } = line.record
      const name = `member ${JSON.stringify(userId)} of ${workspaceId}`
      return planRecord(redis, name, writeMember(line.record), memberSchema)
    }
    case 'surface':
      return planRecord(redis, `surface ${line.record.id}`, writeSurface(line.record), surfaceSchema)
    case 'surface-key':
      return planRecord(redis, `key ${line.record.id}`, writeSurfaceKey(line.record), surfaceKeySchema, IDENTITY)
    case 'workspace-key':
      return planWorkspaceKey(redis, line.record)
    case 'creation': {
      const { workspaceId, id } = line.record
      const write = { key: directoryKeys.creation(workspaceId, id), commands: writeCreation(line.record, now) }
      // One that is not recognized any more needs no place.
      if (write.commands.length === 0) return { found: 'same', name: `creation ${id}`, ...NOTHING }
      return planRecord(redis, `creation ${id}`, write, creationSchema)
    }
    case 'release':
      return planRelease(redis, line.record)
    case 'manifest':
      return planManifest(redis, line.record)
    case 'stored-maps':
      return planStoredMaps(redis, line.record)
    case 'erasure': {
      const { workspaceId, id } = line.record
      const write = { key: directoryKeys.erasure(workspaceId, id), commands: writeErasure(line.record) }
      return planRecord(redis, `erasure ${id}`, write, erasureSchema)
    }
    case 'finding-work':
      return planFindingWork(redis, line.record)
    case 'scrubbing':
      return planRules(redis, line, directoryKeys.scrubbing, writeScrubbing(line.record), scrubbingSchema)
    case 'dropping':
      return planRules(redis, line, directoryKeys.dropping, writeDropping(line.record), droppingSchema)
    case 'alerts':
      return planRules(redis, line, directoryKeys.alerts, writeAlerts(line.record), alertsSchema)
    case 'finding-rules':
      return planRules(redis, line, directoryKeys.findingRules, writeFindingRules(line.record), findingRulesSchema)
    case 'changes':
      return planChanges(redis, line.record)
  }
}

/** Plans the record of a workspace that has one of its kind. */
function planRules<S extends z.ZodType>(
  redis: Redis,
  { kind, record: { workspaceId } }: { readonly kind: string; readonly record: { readonly workspaceId: string } },
  keyOf: (workspaceId: string) => string,
  commands: readonly Command[],
  schema: S,
): Promise<Plan> {
  return planRecord(redis, `${kind} of ${workspaceId}`, { key: keyOf(workspaceId), commands }, schema)
}

/** Fields that a key never changes. If one differs, it is another key with the same digest. */
const IDENTITY = ['id', 'workspaceId', 'surfaceId']

async function planRecord<S extends z.ZodType>(
  redis: Redis,
  name: string,
  { key, commands }: RecordWrite,
  schema: S,
  identity: readonly string[] = [],
): Promise<Plan & { before: z.infer<S> | undefined }> {
  const text = await redis.get(key)
  const guards: Guard[] = [['GET', key, text ?? '']]
  if (text === null) return { found: 'absent', name, guards, commands, before: undefined }
  const stored = schema.safeParse(parseJson(text))
  const before = stored.success ? stored.data : undefined
  const put = String(commands[0]?.[2])
  const found = before !== undefined && JSON.stringify(before) === put ? 'same' : 'differs'
  const [old, next] = [before, JSON.parse(put)] as Record<string, unknown>[]
  const isAnother = old !== undefined && identity.some(field => old[field] !== next?.[field])
  const refusal = isAnother ? `${name} has the digest of another key, ${old.id}` : undefined
  return { found, name, guards, commands, before, refusal }
}

async function planWorkspace(redis: Redis, workspace: z.infer<typeof workspaceSchema>): Promise<Plan> {
  const name = `workspace ${workspace.id}`
  const plan = await planRecord(redis, name, writeWorkspace(workspace, undefined), workspaceSchema)
  const slugKey = directoryKeys.slug(workspace.slug)
  const owner = await redis.get(slugKey)
  const isTaken = owner !== null && owner !== workspace.id
  return {
    ...plan,
    guards: [...plan.guards, ['GET', slugKey, owner ?? '']],
    commands: writeWorkspace(workspace, plan.before).commands,
    refusal: isTaken ? `the slug "${workspace.slug}" of ${workspace.id} belongs to ${owner}` : undefined,
  }
}

async function planWorkspaceKey(redis: Redis, key: WorkspaceKey): Promise<Plan> {
  const name = `key ${key.id}`
  const plan = await planRecord(redis, name, writeWorkspaceKey(key), workspaceKeySchema, IDENTITY)
  const digests = directoryKeys.workspaceKeyDigests(key.workspaceId)
  const digest = await redis.hget(digests, key.id)
  const isTaken = digest !== null && digest !== key.digest
  return {
    ...plan,
    guards: [...plan.guards, ['HGET', digests, digest ?? '', key.id]],
    refusal: isTaken ? `${name} is stored with another digest` : plan.refusal,
  }
}

/** A release without a manifest is indexed as such too, so that the oldest of them can make room for others. */
async function planRelease(redis: Redis, release: Release): Promise<Plan> {
  const { workspaceId, slug, createdAt } = release
  const plan = await planRecord(redis, `release ${slug}`, writeRelease(release), releaseSchema)
  const manifestKey = releaseKeys.manifest(workspaceId, slug)
  const manifest = await redis.get(manifestKey)
  const guards: Guard[] = [...plan.guards, ['GET', manifestKey, manifest ?? '']]
  if (manifest !== null) return { ...plan, guards }
  const index: Command = ['ZADD', releaseKeys.unfinished(workspaceId), Date.parse(createdAt), slug]
  return { ...plan, guards, commands: [...plan.commands, index] }
}

/**
 * An earlier completion never replaces a later one (docs/api/releases.md#source-map-complete): its object is deleted soon
 * after.
 */
async function planManifest(redis: Redis, { workspaceId, releaseSlug, ...pointer }: ManifestLine): Promise<Plan> {
  const name = `manifest of ${releaseSlug}`
  const write = writePointer({ workspaceId, releaseSlug }, pointer)
  const plan = await planRecord(redis, name, write, manifestPointerSchema)
  const isLate = plan.before !== undefined && plan.before.sequence > pointer.sequence
  return isLate ? { ...plan, refusal: `${name} is older than the stored one` } : plan
}

/** A set contains no record that could differ. */
async function planStoredMaps(redis: Redis, { workspaceId, sha256s }: StoredMapsLine): Promise<Plan> {
  const key = releaseKeys.maps(workspaceId)
  const members = sha256s.map(sha256 => Buffer.from(sha256, 'hex'))
  const stored = await redis.smismember(key, ...members)
  const found = stored.every(isMember => isMember === 1) ? 'same' : 'absent'
  const { commands } = writeStoredMaps(workspaceId, sha256s)
  return { found, name: `stored maps of ${workspaceId}`, guards: [], commands }
}

/** Entries of the activity that only the directory has are kept. */
async function planFindingWork(redis: Redis, { activity, ...work }: FindingWorkLine): Promise<Plan> {
  const { workspaceId, findingId } = work
  const name = `finding ${findingId} of ${workspaceId}`
  const [key, log] = [directoryKeys.findingWork(workspaceId), directoryKeys.findingActivity(workspaceId, findingId)]
  const text = await redis.hget(key, findingId)
  const stored = text === null ? undefined : findingWorkSchema.safeParse(parseJson(text))
  const own = await redis.zrange(log, '0', '-1')
  const isSame = text === findingWorkText(work) && activity.every(entry => own.includes(textOf(entry)))
  return {
    found: text === null ? 'absent' : isSame ? 'same' : 'differs',
    name,
    guards: [['HGET', key, text ?? '', findingId]],
    commands: importFindingWork(work, activity, own, stored?.success ? stored.data.activityBytes : 0),
  }
}

/** A log has no entries that could differ. Those that are too old for the number that it keeps are not added. */
async function planChanges(redis: Redis, { workspaceId, changes }: ChangesLine): Promise<Plan> {
  const scores = await redis.zmscore(directoryKeys.changes(workspaceId), ...changes.map(textOf))
  return {
    found: scores.includes(null) ? 'absent' : 'same',
    name: `changes of ${workspaceId}`,
    guards: [],
    commands: importChanges(workspaceId, changes),
  }
}
