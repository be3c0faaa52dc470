import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { releaseSchema, surfaceKeySchema, workspaceKeySchema } from '../../schemas/records/directory.ts'
import { parseJson } from '../json/parse-json.ts'
import { errorFields, TransientError } from '../runtime/errors.ts'
import { withDeadline } from '../runtime/lifecycle.ts'
import type { Logger } from '../runtime/logger.ts'
import { DIRECTORY_ROOT } from './record.ts'
import { releaseKeys } from './release-store.ts'
import type { Command } from './transaction.ts'
import { writeSurfaceKey, writeWorkspaceKey } from './writes.ts'

/** Beginning of the names of keys that versions before the hash tag wrote. */
const OLD_ROOT = 'penstock'
/** Beginnings of the old names, after OLD_ROOT. Other keys of the same Redis belong to the queues. */
const FAMILIES = [
  'user:',
  'users',
  'workspace:',
  'workspaces',
  'workspace-slug:',
  'workspace-credential:',
  'credential:',
  'receipt-secret',
]
/** Old names that are adopted last. While one of them exists, an adoption is still to be done, or was interrupted. */
const MARKERS = ['users', 'workspaces', 'receipt-secret'].map(name => `${OLD_ROOT}:${name}`)

const LOCK = `${DIRECTORY_ROOT}:adoption`
const LOCK_MS = 30_000
const WAIT_MS = 200
const RETRY_MS = 1_000
const SCANNED_KEYS = 1_000

/** Whether the directory that a process is connected to has the names of this version. */
export interface DirectoryAdoption {
  readonly isDone: boolean
  /** Resolves when the directory is adopted. Never rejects. */
  readonly done: Promise<void>
}

/** Adopts the directory as soon as the connection is ready, and tries again until that has succeeded. */
export function adoptOnConnect(redis: Redis, logger: Logger): DirectoryAdoption {
  let isDone = false
  const done = new Promise<void>(resolve => {
    const attempt = () => {
      adoptDirectory(redis, logger).then(
        () => {
          isDone = true
          redis.off('ready', attempt)
          resolve()
        },
        error => {
          logger.warn(errorFields(error), 'the directory could not be adopted')
          if (redis.status === 'ready') setTimeout(attempt, RETRY_MS).unref()
        },
      )
    }
    if (redis.status === 'ready') attempt()
    redis.on('ready', attempt)
  })
  return {
    get isDone() {
      return isDone
    },
    done,
  }
}

/** How long a call waits for the adoption before it fails, so that its client gets its answer in time. */
const CALL_WAIT_MS = 800

/** Returns the functions of a store with every call waiting until the directory is adopted. */
export function whenAdopted<T extends object>(store: T, adoption: DirectoryAdoption): T {
  const waiting = Object.entries(store as Record<string, (...words: unknown[]) => unknown>).map(([name, run]) => {
    const wait = async (...words: unknown[]) => {
      await withDeadline(adoption.done, CALL_WAIT_MS, 'late').catch(error => {
        throw new TransientError('the directory is not adopted yet', { cause: error })
      })
      return run(...words)
    }
    return [name, (...words: unknown[]) => (adoption.isDone ? run(...words) : wait(...words))]
  })
  return Object.fromEntries(waiting) as T
}

/**
 * Renames the keys of a directory that an earlier version wrote, once. One process does it under a lock, and the others
 * wait. Processes of that version must have stopped, because they do not find the renamed keys. If it is interrupted, the
 * next process continues. A new directory costs one round trip.
 */
export async function adoptDirectory(redis: Redis, logger: Logger): Promise<void> {
  const token = randomUUID()
  while ((await redis.exists(...MARKERS)) > 0) {
    if ((await redis.set(LOCK, token, 'PX', LOCK_MS, 'NX')) === null) {
      await new Promise(resolve => setTimeout(resolve, WAIT_MS))
      continue
    }
    try {
      const count = await renameAll(redis, token)
      logger.info({ keys: count }, 'the directory of an earlier version was adopted')
    } finally {
      if ((await redis.get(LOCK)) === token) await redis.del(LOCK)
    }
  }
}

async function renameAll(redis: Redis, token: string): Promise<number> {
  let count = 0
  let cursor = '0'
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `${OLD_ROOT}:*`, 'COUNT', SCANNED_KEYS)
    cursor = next
    const owned = keys.filter(key => !MARKERS.includes(key) && isOfDirectory(key))
    await renameKeys(redis, owned)
    await indexRecords(redis, owned.map(newName))
    count += owned.length
    if ((await redis.get(LOCK)) !== token) throw new TransientError('another process has taken over the adoption')
    await redis.pexpire(LOCK, LOCK_MS)
  } while (cursor !== '0')
  await renameKeys(redis, MARKERS)
  return count
}

function isOfDirectory(key: string): boolean {
  return FAMILIES.some(family => key.startsWith(`${OLD_ROOT}:${family}`))
}

function newName(key: string): string {
  return DIRECTORY_ROOT + key.slice(OLD_ROOT.length)
}

async function renameKeys(redis: Redis, keys: readonly string[]): Promise<void> {
  const pipeline = redis.pipeline()
  for (const key of keys) pipeline.renamenx(key, newName(key))
  const replies = (await pipeline.exec()) ?? []
  for (const [i, [error, renamed]] of replies.entries()) {
    const key = keys[i] ?? ''
    // A marker may not exist: a directory without receipts has no secret.
    if (error?.message.includes('no such key')) continue
    if (error) throw error
    if (renamed === 0) await mergeKey(redis, key)
  }
}

/** Adds the members of an index to those under its new name. A record under its new name is newer, and stays. */
async function mergeKey(redis: Redis, key: string): Promise<void> {
  const name = newName(key)
  const type = await redis.type(key)
  if (type === 'zset') await redis.zunionstore(name, 2, name, key, 'AGGREGATE', 'MAX')
  if (type === 'set') await redis.sunionstore(name, name, key)
  if (type === 'hash') {
    for (const [field, value] of Object.entries(await redis.hgetall(key))) await redis.hsetnx(name, field, value)
  }
  await redis.unlink(key)
}

const RECORDS = {
  surfaceKey: `${DIRECTORY_ROOT}:credential:`,
  workspaceKey: `${DIRECTORY_ROOT}:workspace-credential:`,
  release: new RegExp(`^${DIRECTORY_ROOT.replace(/[{}]/g, '\\$&')}:workspace:[^:]+:release:[^:]+$`),
}

/** Writes the indexes of these records that earlier versions do not have. */
async function indexRecords(redis: Redis, keys: readonly string[]): Promise<void> {
  const records = keys.filter(
    key => key.startsWith(RECORDS.surfaceKey) || key.startsWith(RECORDS.workspaceKey) || RECORDS.release.test(key),
  )
  const texts = records.length === 0 ? [] : await redis.mget(records)
  const pipeline = redis.pipeline()
  for (const [i, text] of texts.entries()) {
    for (const [name, ...words] of indexesOf(records[i] ?? '', parseJson(text ?? ''))) pipeline.call(name, ...words)
  }
  for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
}

/** Returns the commands that write the indexes of a record. One that breaks its schema gets none, and is found when it is read. */
function indexesOf(key: string, record: unknown): readonly Command[] {
  if (key.startsWith(RECORDS.surfaceKey)) {
    const parsed = surfaceKeySchema.safeParse(record)
    return parsed.success ? onlyIndexes(writeSurfaceKey(parsed.data).commands) : []
  }
  if (key.startsWith(RECORDS.workspaceKey)) {
    const parsed = workspaceKeySchema.safeParse(record)
    return parsed.success ? onlyIndexes(writeWorkspaceKey(parsed.data, Number.POSITIVE_INFINITY).commands) : []
  }
  const parsed = releaseSchema.safeParse(record)
  if (!parsed.success) return []
  const { workspaceId, slug, createdAt } = parsed.data
  // Those that have a manifest are left out when it comes to removing releases.
  return [['ZADD', releaseKeys.unfinished(workspaceId), Date.parse(createdAt), slug]]
}

function onlyIndexes(commands: readonly Command[]): readonly Command[] {
  return commands.filter(([name]) => name === 'ZADD')
}
