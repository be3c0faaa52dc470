import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { Redis } from 'ioredis'
import type { Backup } from '../../schemas/records/backup.ts'
import { pagesOf } from '../concurrency/pages.ts'
import type { LineKind } from '../directory/export/lines.ts'
import { readExport } from '../directory/export/read-export.ts'
import { writeLine } from '../directory/export/write-line.ts'
import { DIRECTORY_ROOT, directoryKeys, isRecordKey } from '../directory/record.ts'
import { releaseKeys } from '../directory/release-store.ts'
import { TransientError } from '../runtime/errors.ts'
import type { Backups } from './backups.ts'

/** Commands that are sent before their replies are awaited. */
const PAGE = 500
const SCAN_COUNT = 1_000

/** Dependencies of restoring a backup. */
export interface RestoreDeps {
  /** A connection that nothing else uses and that is never made again, with time for a transaction of the whole directory. */
  readonly redis: Redis
  readonly backups: Backups
  readonly now: () => number
}

/** The outcome of restoring a backup. Nothing has changed unless it is `restored`. */
export type Restored =
  | { readonly outcome: 'restored'; readonly records: Readonly<Partial<Record<LineKind, number>>> }
  /** The directory has users or workspaces. */
  | { readonly outcome: 'not_empty' }

/**
 * Makes the directory what it was at the time of a backup, all of it or nothing: one transaction of Redis, which is sent while
 * the parts of the backup are read and verified, and executed at their end. With `replace`, the transaction first removes all
 * records that are there. Throws a BackupError or a LineError if the backup cannot be restored, and a TransientError if a user,
 * a workspace or something of one is added meanwhile, or the connection is lost.
 */
export async function restoreDirectory(
  { redis, backups, now }: RestoreDeps,
  backup: Backup,
  { replace }: { readonly replace: boolean },
): Promise<Restored> {
  await redis.watch(directoryKeys.workspaces, directoryKeys.users, directoryKeys.receiptSecret)
  const [workspaces, users] = [await redis.zcard(directoryKeys.workspaces), await redis.zcard(directoryKeys.users)]
  if (workspaces + users > 0 && !replace) {
    await redis.unwatch()
    return { outcome: 'not_empty' }
  }
  const before = replace ? await watchedRecordKeys(redis) : []
  const records: Partial<Record<LineKind, number>> = {}
  const queue = new CommandQueue(redis)
  await redis.multi({ pipeline: false })
  try {
    for (const key of before) await queue.add(['UNLINK', key])
    await queue.flush()
    await pipeline(Readable.from(backups.read(backup)), createGunzip(), async pieces => {
      for await (const { line } of readExport(pieces as AsyncIterable<Buffer>)) {
        for (const command of writeLine(line, now())) await queue.add(command)
        records[line.kind] = (records[line.kind] ?? 0) + 1
      }
    })
    await queue.flush()
  } catch (error) {
    await redis.discard().catch(() => {})
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
  ...[
    directoryKeys.members(workspaceId),
    directoryKeys.workspaceKeys(workspaceId),
    directoryKeys.erasures(workspaceId),
  ],
]

type Words = readonly [name: string, key: string, ...rest: (string | number | Buffer)[]]

/** Commands that take any number of keys or members, so that those of a page can be sent as one. */
const JOINED = new Set(['ZADD', 'SADD', 'HSET', 'UNLINK'])

/**
 * Sends the commands of a transaction, a page at a time, with as few commands as possible. Throws a TransientError if Redis
 * runs one of them instead of queueing it.
 */
class CommandQueue {
  readonly #redis: Redis
  #page: Words[] = []

  constructor(redis: Redis) {
    this.#redis = redis
  }

  async add(command: Words): Promise<void> {
    if (this.#page.push(command) >= PAGE) await this.flush()
  }

  async flush(): Promise<void> {
    const page = this.#page
    this.#page = []
    const replies = await Promise.all(joinCommands(page).map(([name, ...rest]) => this.#redis.call(name, ...rest)))
    if (replies.some(reply => reply !== 'QUEUED')) throw new TransientError('the transaction was lost')
  }
}

/**
 * Joins commands that add records or members: those before the first other command, then those after it, and so on. Their order
 * among themselves does not matter, because each record has a key of its own. The messages of a channel become one at the end,
 * with spaces in between (CREDENTIAL_CHANGES_CHANNEL).
 */
function joinCommands(commands: readonly Words[]): Words[] {
  const joined: Words[] = []
  const published = new Map<string, (string | number | Buffer)[]>()
  let open = new Map<string, (string | number | Buffer)[]>()
  const close = () => {
    for (const [id, words] of open) joined.push([id.split(' ', 1)[0] ?? '', ...words] as unknown as Words)
    open = new Map()
  }
  const add = (id: string, first: readonly string[], rest: readonly (string | number | Buffer)[]) => {
    const words = open.get(id)
    if (words) words.push(...rest)
    else open.set(id, [...first, ...rest])
  }
  for (const [name, key, ...rest] of commands) {
    if (name === 'SET' && rest.length === 1) add('MSET', [], [key, ...rest])
    else if (name === 'UNLINK') add('UNLINK', [], [key])
    else if (name === 'PUBLISH') published.set(key, (published.get(key) ?? []).concat(rest))
    else if (JOINED.has(name)) add(`${name} ${key}`, [key], rest)
    else {
      close()
      joined.push([name, key, ...rest])
    }
  }
  close()
  for (const [channel, messages] of published) joined.push(['PUBLISH', channel, messages.join(' ')])
  return joined
}
