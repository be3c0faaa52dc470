import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { Redis } from 'ioredis'
import type { Backup } from '../../schemas/records/backup.ts'
import type { LineKind } from '../directory/export/lines.ts'
import { readExport } from '../directory/export/read-export.ts'
import { writeLine } from '../directory/export/write-line.ts'
import { DIRECTORY_ROOT, directoryKeys, isRecordKey } from '../directory/record.ts'
import type { Command } from '../directory/transaction.ts'
import { TransientError } from '../runtime/errors.ts'
import type { Backups } from './backups.ts'

/** Commands that are sent before their replies are awaited. */
const PAGE = 500
const SCAN_COUNT = 1_000

/** Dependencies of restoring a backup. */
export interface RestoreDeps {
  /** A connection that nothing else uses, with time for a transaction of the whole directory. */
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
 * records that are there. Throws a BackupError or a LineError if the backup cannot be restored, and a TransientError if the
 * directory changes meanwhile.
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
  const before = replace ? await recordKeys(redis) : []
  const records: Partial<Record<LineKind, number>> = {}
  const queue = new CommandQueue(redis)
  await redis.multi({ pipeline: false })
  try {
    for (const key of before) await queue.add(['UNLINK', key])
    await pipeline(Readable.from(backups.read(backup)), createGunzip(), async pieces => {
      for await (const { line } of readExport(pieces as AsyncIterable<Buffer>)) {
        for (const command of writeLine(line, now())) await queue.add(command)
        records[line.kind] = (records[line.kind] ?? 0) + 1
      }
    })
    await queue.flush()
  } catch (error) {
    await redis.discard().catch(() => {})
    throw error
  }
  const replies = await redis.exec()
  if (replies === null) throw new TransientError('the directory changed meanwhile: nothing was restored, run it again')
  const failed = replies.find(([error]) => error !== null)?.[0]
  if (failed) throw failed
  return { outcome: 'restored', records }
}

async function recordKeys(redis: Redis): Promise<string[]> {
  const found = new Set<string>()
  for await (const keys of redis.scanStream({ match: `${DIRECTORY_ROOT}:*`, count: SCAN_COUNT })) {
    for (const key of keys as string[]) if (isRecordKey(key)) found.add(key)
  }
  return [...found]
}

/** Sends the commands of a transaction, a page at a time. */
class CommandQueue {
  readonly #redis: Redis
  #sent: Promise<unknown>[] = []

  constructor(redis: Redis) {
    this.#redis = redis
  }

  async add([name, ...rest]: Command | readonly [name: string, key: string]): Promise<void> {
    const sent = this.#redis.call(name, ...rest)
    // A failure is thrown by `flush`, which is not reached if the backup cannot be read.
    sent.catch(() => {})
    this.#sent.push(sent)
    if (this.#sent.length >= PAGE) await this.flush()
  }

  async flush(): Promise<void> {
    const sent = this.#sent
    this.#sent = []
    await Promise.all(sent)
  }
}
