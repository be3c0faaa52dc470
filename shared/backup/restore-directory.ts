import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { Redis } from 'ioredis'
import { pagesOf } from '../concurrency/pages.ts'
import { writeAlerts } from '../directory/alerts-store.ts'
import { importChanges } from '../directory/changes/change-log.ts'
import { writeCreation } from '../directory/creations.ts'
import { writeDropping } from '../directory/dropping-store.ts'
import { writeErasure } from '../directory/erasures.ts'
import type { LineKind, RecordLine } from '../directory/export/lines.ts'
import { readExport } from '../directory/export/read-export.ts'
import { writeFindingRules } from '../directory/findings/finding-rules-store.ts'
import { importFindingWork } from '../directory/findings/write-finding-work.ts'
import { CREDENTIAL_CHANGES_CHANNEL, DIRECTORY_ROOT, directoryKeys, isRecordKey } from '../directory/record.ts'
import { releaseKeys } from '../directory/release-store.ts'
import { writeScrubbing } from '../directory/scrubbing-store.ts'
import type { Command } from '../directory/transaction.ts'
import {
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
} from '../directory/writes.ts'
import { TransientError } from '../runtime/errors.ts'
import type { Backup, Backups } from './backups.ts'

/** Commands that are sent before their replies are awaited. */
const PAGE = 500
const SCAN_COUNT = 1_000

/** Dependencies of restoring a backup. */
interface RestoreDeps {
  /** A connection that nothing else uses and that is never made again, with time for a transaction of the whole directory. */
  readonly redis: Redis
  readonly backups: Pick<Backups, 'read'>
  readonly now: () => number
}

/** The outcome of restoring a backup. Nothing has changed unless it is `restored`. */
type Restored =
  | { readonly outcome: 'restored'; readonly records: Readonly<Partial<Record<LineKind, number>>> }
  /** The directory has users or workspaces. */
  | { readonly outcome: 'not_empty' }

/**
 * Makes the directory what it was at the time of a backup, all of it or nothing. All bytes of the backup are verified, then its
 * lines are read as those of an import, and stored in one transaction of Redis. With `replace`, the transaction first removes
 * all records that are there. Throws a BackupError or a LineError if the backup cannot be restored, and a TransientError if a
 * user, a workspace or something of one is added meanwhile, or the connection is lost.
 */
export async function restoreDirectory(
  { redis, backups, now }: RestoreDeps,
  backup: Backup,
  { replace }: { readonly replace: boolean },
): Promise<Restored> {
  await redis.watch(directoryKeys.workspaces, directoryKeys.users, directoryKeys.receiptSecret)
  const [workspaces, users] = [await redis.zcard(directoryKeys.workspaces), await redis.zcard(directoryKeys.users)]
  if (workspaces + users > 0 && !replace) return { outcome: 'not_empty' }
  const before = replace ? await watchedRecordKeys(redis) : []
  const bytes = await backups.read(backup)
  const records: Partial<Record<LineKind, number>> = {}
  try {
    await redis.multi({ pipeline: false })
    for (const page of pagesOf(before, PAGE)) await redis.call('UNLINK', ...page)
    let commands: Command[] = []
    await pipeline(Readable.from([bytes]), createGunzip(), async pieces => {
      for await (const { line } of readExport(pieces as AsyncIterable<Buffer>)) {
        records[line.kind] = (records[line.kind] ?? 0) + 1
        commands.push(...writeLine(line, now()))
        if (commands.length < PAGE) continue
        await send(redis, commands)
        commands = []
      }
    })
    await send(redis, commands)
  } catch (error) {
    // The transaction ends with its connection.
    if (redis.status === 'ready') throw error
    throw new TransientError('the connection to Redis was lost: nothing was restored, run it again', { cause: error })
  }
  const replies = await redis.exec().catch((error: Error) => {
    if (error.name === 'ReplyError') throw error
    throw new TransientError('Redis did not answer at the end: all was restored or nothing', { cause: error })
  })
  if (replies === null) throw new TransientError('the directory changed meanwhile: nothing was restored, run it again')
  const failed = replies.find(([error]) => error !== null)?.[0]
  if (failed) throw failed
  return { outcome: 'restored', records }
}

/** Sends commands of the transaction. Their messages about credentials become one, with spaces in between. */
async function send(redis: Redis, commands: readonly Command[]): Promise<void> {
  const digests = commands.flatMap(([name, , digest]) => (name === 'PUBLISH' ? [digest] : []))
  const sent = commands.filter(([name]) => name !== 'PUBLISH')
  if (digests.length > 0) sent.push(['PUBLISH', CREDENTIAL_CHANGES_CHANNEL, digests.join(' ')])
  await Promise.all(sent.map(([name, ...words]) => redis.call(name, ...words)))
}

/**
 * Returns the keys of all records, and watches the indexes to which a new one would be added: a record that was added after the
 * scan would stay without its index.
 */
async function watchedRecordKeys(redis: Redis): Promise<string[]> {
  const ids = await redis.zrange(directoryKeys.workspaces, 0, '-1')
  for (const page of pagesOf(ids, PAGE)) await redis.watch(...page.flatMap(indexesOf))
  const found = new Set<string>()
  for await (const keys of redis.scanStream({ match: `${DIRECTORY_ROOT}:*`, count: SCAN_COUNT })) {
    for (const key of keys as string[]) if (isRecordKey(key)) found.add(key)
  }
  return [...found]
}

const indexesOf = (workspaceId: string) => [
  ...[releaseKeys.releases(workspaceId), releaseKeys.unfinished(workspaceId)],
  ...[directoryKeys.surfaceIds(workspaceId), directoryKeys.surfaceKeyEnds(workspaceId)],
  directoryKeys.members(workspaceId),
  directoryKeys.workspaceKeys(workspaceId),
  directoryKeys.creations(workspaceId),
  directoryKeys.erasures(workspaceId),
]

/**
 * Returns the commands that store the record of a line in a directory that has no other records than those of the lines
 * before it. `now` is in Unix milliseconds.
 */
function writeLine(line: RecordLine, now: number): readonly Command[] {
  switch (line.kind) {
    // A directory that is restored elsewhere stays that of its installation.
    case 'installation':
      return [['SET', directoryKeys.installation, JSON.stringify(line.record), 'NX']]
    case 'receipt-secret':
      return writeReceiptSecret(line.record).commands
    case 'user':
      return writeUser(line.record).commands
    case 'workspace':
      return writeWorkspace(line.record, undefined).commands
    case 'member':
      return writeMember(line.record).commands
    case 'surface':
      return writeSurface(line.record).commands
    case 'surface-key':
      return writeSurfaceKey(line.record).commands
    case 'workspace-key':
      return writeWorkspaceKey(line.record).commands
    case 'creation':
      return writeCreation(line.record, now)
    case 'release': {
      const { workspaceId, slug, createdAt } = line.record
      // The line of its manifest, if it has one, removes it from this index.
      const unfinished: Command = ['ZADD', releaseKeys.unfinished(workspaceId), Date.parse(createdAt), slug]
      return [...writeRelease(line.record).commands, unfinished]
    }
    case 'manifest': {
      const { workspaceId, releaseSlug, ...pointer } = line.record
      return writePointer({ workspaceId, releaseSlug }, pointer).commands
    }
    case 'stored-maps':
      return writeStoredMaps(line.record.workspaceId, line.record.sha256s).commands
    case 'erasure':
      return writeErasure(line.record)
    case 'finding-work': {
      const { activity, ...work } = line.record
      return importFindingWork(work, activity)
    }
    case 'scrubbing':
      return writeScrubbing(line.record)
    case 'dropping':
      return writeDropping(line.record)
    case 'alerts':
      return writeAlerts(line.record)
    case 'finding-rules':
      return writeFindingRules(line.record)
    case 'changes':
      return importChanges(line.record.workspaceId, line.record.changes)
  }
}
