import { hash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { type Backup, backupSchema } from '../../schemas/records/backup.ts'
import { forEachConcurrently } from '../concurrency/for-each.ts'
import type { Line } from '../directory/export/lines.ts'
import { parseJson } from '../json/parse-json.ts'
import type { ObjectStore } from '../object-store/types.ts'
import { BackupError } from './backup-error.ts'
import type { Seal } from './seal.ts'

/** Bytes of a part before it is encrypted. Two parts are in memory at a time. */
const PART_BYTES = 8 * 1024 * 1024
/** Bytes of the description of a backup: 10,000 parts, 80 GB. */
const DESCRIPTION_MAX_BYTES = 2 * 1024 * 1024
/** Parts without a description are those of a backup that was interrupted, or of one that is being written. */
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1_000
const CONCURRENT_READS = 8
/** A backup that is this much newer than the present was named by a clock that was ahead. */
export const CLOCK_AHEAD_MS = 60 * 60 * 1_000

const ROOT = 'directory-backups'
const NAMED = `${ROOT}/named/`
const PARTS = `${ROOT}/parts/`
const namedKey = (name: string) => `${NAMED}${name}.json`
const partPrefix = (name: string) => `${PARTS}${name}/`
const partKey = (name: string, index: number) => `${partPrefix(name)}${String(index).padStart(6, '0')}`

/** Dependencies of {@link Backups}. */
export interface BackupsDeps {
  readonly objects: Pick<ObjectStore, 'put' | 'get' | 'list' | 'deleteMany'>
  /** Encrypts backups. Without it, they are readable, and an encrypted one cannot be restored. */
  readonly seal: Seal | undefined
  readonly now: () => number
}

/** The result of reading the lines of a backup while they are written. */
interface Counted {
  records: number
  workspaces: number
}

/**
 * The backups of the directory in the object store. A backup is the lines of an export, gzipped, in parts of 8 MiB that may be
 * encrypted. Its description is stored last: until then it has no name, so the newest backup is never a partial one.
 */
export class Backups {
  readonly #deps: BackupsDeps

  constructor(deps: BackupsDeps) {
    this.#deps = deps
  }

  /** Returns the names of all backups, the newest first. Those of clocks that were ahead come last, and are removed first. */
  async names(): Promise<string[]> {
    const names: string[] = []
    for await (const page of this.#deps.objects.list(NAMED)) {
      for (const { key } of page) if (key.endsWith('.json')) names.push(key.slice(NAMED.length, -'.json'.length))
    }
    const latestMs = this.#deps.now() + CLOCK_AHEAD_MS
    const isAhead = (name: string) => createdAtMsOf(name) > latestMs
    names.reverse()
    return [...names.filter(name => !isAhead(name)), ...names.filter(isAhead)]
  }

  /** Returns the descriptions of all backups, the newest first. Those that are removed meanwhile are left out. */
  async list(): Promise<Backup[]> {
    const names = await this.names()
    const found: (Backup | undefined)[] = new Array(names.length)
    await forEachConcurrently(names, { concurrency: CONCURRENT_READS }, async (name, i) => {
      found[i] = await this.find(name)
    })
    return found.filter(backup => backup !== undefined)
  }

  /** Returns the description of a backup. Throws a BackupError if it is invalid. */
  async find(name: string): Promise<Backup | undefined> {
    const object = await this.#deps.objects.get(namedKey(name), DESCRIPTION_MAX_BYTES)
    if (object === undefined) return undefined
    const parsed = backupSchema.safeParse(parseJson(object.body.toString()))
    if (parsed.success && parsed.data.name === name) return parsed.data
    throw new BackupError(`the description of ${name} is invalid`)
  }

  /**
   * Stores these lines of an export as a backup. `check` runs after each part, and before the backup gets its name; if it
   * throws, there is no backup. Throws a BackupError if the lines have no workspace, because restoring them would restore nothing.
   */
  async write(lines: AsyncIterable<Line>, check: (counted: Counted) => Promise<void>): Promise<Backup> {
    const { objects, seal, now } = this.#deps
    const createdAt = new Date(now()).toISOString()
    const name = `${createdAt.replace(/[-:.]/g, '')}-${randomBytes(4).toString('hex')}`
    const counted: Counted = { records: 0, workspaces: 0 }
    const parts: Backup['parts'] = []
    try {
      const text = Readable.from(textOf(lines, counted)).compose(createGzip()) as AsyncIterable<Buffer>
      for await (const { bytes, isLast } of partsOf(text)) {
        const index = parts.length
        const stored = seal ? seal.seal({ backup: name, index, isLast }, bytes) : bytes
        await objects.put(partKey(name, index), stored, { contentType: 'application/octet-stream' })
        parts.push({ bytes: stored.length, sha256: hash('sha256', stored) })
        await check(counted)
      }
      if (counted.workspaces === 0)
        throw new BackupError('the directory has no workspace, so there is nothing to back up')
    } catch (error) {
      // Parts that cannot be deleted now are deleted by `prune` a day later.
      await objects.deleteMany(parts.map((_, index) => partKey(name, index))).catch(() => {})
      throw error
    }
    const backup: Backup = { version: 1, name, createdAt, ...counted, isEncrypted: seal !== undefined, parts }
    await objects.put(namedKey(name), Buffer.from(JSON.stringify(backup)), { contentType: 'application/json' })
    return backup
  }

  /** Yields the gzipped lines of a backup. Throws a BackupError if a part is missing, changed or cannot be decrypted. */
  async *read({ name, isEncrypted, parts }: Backup): AsyncGenerator<Buffer> {
    const { objects, seal } = this.#deps
    if (isEncrypted && !seal) throw new BackupError(`${name} is encrypted: set DIRECTORY_BACKUP_KEY to its key`)
    // Else a backup that was put into the bucket by others would be restored.
    if (!isEncrypted && seal)
      throw new BackupError(`${name} is not encrypted: unset DIRECTORY_BACKUP_KEY to restore it`)
    for (const [index, { bytes, sha256 }] of parts.entries()) {
      const object = await objects.get(partKey(name, index), bytes)
      if (object === undefined) throw new BackupError(`part ${index} of ${name} is missing`)
      if (hash('sha256', object.body) !== sha256) throw new BackupError(`part ${index} of ${name} was changed`)
      const place = { backup: name, index, isLast: index === parts.length - 1 }
      yield seal ? seal.open(place, object.body) : object.body
    }
  }

  /** Removes all backups but the newest ones, and parts of backups that were interrupted. */
  async prune(keep: number): Promise<void> {
    const { objects, now } = this.#deps
    const names = await this.names()
    const old = names.slice(keep)
    // The name goes first, so that no backup without its parts is listed.
    await objects.deleteMany(old.map(namedKey))
    const kept = new Set(names.slice(0, keep))
    const started = new Date(now() - ABANDONED_AFTER_MS).toISOString().replace(/[-:.]/g, '')
    for await (const page of objects.list(PARTS)) {
      const gone = page.filter(({ key }) => {
        const name = key.slice(PARTS.length).split('/')[0] ?? ''
        return !kept.has(name) && (old.includes(name) || name < started)
      })
      await objects.deleteMany(gone.map(({ key }) => key))
    }
  }
}

/** Returns the time of creation that the name of a backup states, in Unix ms. */
export function createdAtMsOf(name: string): number {
  return Date.parse(name.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z.*$/, '$1-$2-$3T$4:$5:$6.$7Z'))
}

async function* textOf(lines: AsyncIterable<Line>, counted: Counted): AsyncGenerator<string> {
  for await (const line of lines) {
    if (line.kind === 'workspace') counted.workspaces++
    if (line.kind !== 'end') counted.records++
    yield `${JSON.stringify(line)}\n`
  }
}

/** Yields the bytes in parts of PART_BYTES; the last one has the rest. */
async function* partsOf(pieces: AsyncIterable<Buffer>): AsyncGenerator<{ bytes: Buffer; isLast: boolean }> {
  let held: Buffer[] = []
  let size = 0
  for await (const piece of pieces) {
    if (size >= PART_BYTES) {
      yield { bytes: Buffer.concat(held), isLast: false }
      held = []
      size = 0
    }
    held.push(piece)
    size += piece.length
  }
  yield { bytes: Buffer.concat(held), isLast: true }
}
