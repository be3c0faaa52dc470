import { hash, hkdfSync } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { GIB, HOUR_MS } from '../../schemas/units.ts'
import type { Line } from '../directory/export/lines.ts'
import type { ObjectStore } from '../object-store/types.ts'
import { openBytes, sealBytes } from '../runtime/sealed-bytes.ts'

/** Bytes of a stored backup, all of which are in memory while it is made or restored. 100,000 surface keys take 5.6 MB. */
const MAX_BYTES = GIB
/** A backup that is this much newer than the present was named by a clock that was ahead. */
export const CLOCK_AHEAD_MS = HOUR_MS

/** Beginning of the keys of the backups that workers make regularly. */
const REGULAR_ROOT = 'directory-backups/'
const [PLAIN, ENCRYPTED] = ['.jsonl.gz', '.jsonl.gz.aes']
/** The name of a backup is its time, and the beginning of the SHA-256 of the stored bytes. */
const NAME = /^((\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z-([0-9a-f]{16}))\.jsonl\.gz(\.aes)?$/

/** Dependencies of {@link Backups}. */
export interface BackupsDeps {
  readonly objects: Pick<ObjectStore, 'put' | 'get' | 'head' | 'list' | 'deleteMany'>
  /** Encrypts backups. Without it, they are readable, and an encrypted one cannot be restored. */
  readonly key: string | undefined
  /** Beginning of the keys of the backups, with a slash at its end. By default that of the regular ones. */
  readonly root?: string
  readonly now: () => number
}

/** A backup, as its key in the object store describes it. */
export interface Backup {
  readonly key: string
  readonly name: string
  readonly createdAt: string
  /** Stored bytes. */
  readonly bytes: number
  readonly isEncrypted: boolean
}

/** How much a backup contains. It is stored beside the object, and a copy may not have it: NaN. */
export interface BackupContents {
  readonly workspaces: number
  readonly records: number
}

/**
 * The backups of the directory in the object store. A backup is an export, gzipped, in one object that may be encrypted. The
 * store has all of an object or nothing of it, so the newest backup is never a partial one.
 */
export class Backups {
  readonly #deps: BackupsDeps

  constructor(deps: BackupsDeps) {
    this.#deps = deps
  }

  /** Returns all backups, the newest first. Those of clocks that were ahead come last, and are removed first. */
  async list(): Promise<Backup[]> {
    const found: Backup[] = []
    const { objects, root = REGULAR_ROOT } = this.#deps
    for await (const page of objects.list(root)) {
      for (const { key, size } of page) {
        const backup = parseKey(root, key, size)
        if (backup) found.push(backup)
      }
    }
    const latestMs = this.#deps.now() + CLOCK_AHEAD_MS
    const isAhead = ({ createdAt }: Backup) => Date.parse(createdAt) > latestMs
    found.reverse()
    return [...found.filter(backup => !isAhead(backup)), ...found.filter(isAhead)]
  }

  /** Returns what a backup contains. */
  async contents({ key }: Backup): Promise<BackupContents> {
    const metadata = (await this.#deps.objects.head(key))?.metadata
    return { workspaces: Number(metadata?.workspaces), records: Number(metadata?.records) }
  }

  /**
   * Throws a BackupError if the newest backup is encrypted and there is no key: the next one would be readable for everyone who
   * can read the bucket, without anyone having decided so.
   */
  async assertNotPlainAfterEncrypted(): Promise<void> {
    if (this.#deps.key !== undefined) return
    const [newest] = await this.list()
    if (newest?.isEncrypted) throw plainAfterEncrypted(newest.name)
  }

  /**
   * Stores the lines of an export as a backup. `check` runs while they are read and once all are read; if it throws, there is
   * no backup. Throws a BackupError if the lines have no workspace, because restoring them would restore nothing.
   */
  async write(lines: AsyncIterable<Line>, check: () => Promise<void>): Promise<Backup & BackupContents> {
    const createdAt = new Date(this.#deps.now()).toISOString()
    const contents = { workspaces: 0, records: 0 }
    const pieces: Buffer[] = []
    let size = 0
    await pipeline(Readable.from(textOf(lines, contents)), createGzip(), async (gzipped: AsyncIterable<Buffer>) => {
      for await (const piece of gzipped) {
        await check()
        pieces.push(piece)
        size += piece.length
        if (size > MAX_BYTES - 1024) throw new BackupError(`the backup would have more than ${MAX_BYTES} bytes`)
      }
    })
    if (contents.workspaces === 0) {
      throw new BackupError('the directory has no workspace, so there is nothing to back up')
    }
    const { key: secret, root = REGULAR_ROOT } = this.#deps
    const text = Buffer.concat(pieces)
    const body = secret === undefined ? text : encrypt(secret, createdAt, text)
    const name = `${createdAt.replace(/[-:.]/g, '')}-${digestOf(body)}`
    const key = root + name + (secret === undefined ? PLAIN : ENCRYPTED)
    const metadata = { workspaces: `${contents.workspaces}`, records: `${contents.records}` }
    await this.#deps.objects.put(key, body, { contentType: 'application/octet-stream', metadata })
    return { key, name, createdAt, bytes: body.length, isEncrypted: secret !== undefined, ...contents }
  }

  /** Returns the gzipped lines of a backup. Throws a BackupError if any byte is missing or changed, or it has another key. */
  async read({ key, name, createdAt, isEncrypted }: Backup): Promise<Buffer> {
    const { objects, key: secret } = this.#deps
    if (isEncrypted && secret === undefined) {
      throw new BackupError(`${name} is encrypted: set DIRECTORY_BACKUP_KEY to the key that it was made with`)
    }
    // Else a backup that was put into the bucket by others would be restored.
    if (!isEncrypted && secret !== undefined) {
      throw new BackupError(
        `${name} is not encrypted, so it may come from anyone who can write to the bucket: ` +
          'name an encrypted backup, or unset DIRECTORY_BACKUP_KEY to trust this one',
      )
    }
    const object = await objects.get(key, MAX_BYTES)
    if (object === undefined) throw new BackupError(`${name} was removed`)
    if (!name.endsWith(digestOf(object.body))) throw new BackupError(`${name} was changed, or a part of it is missing`)
    return secret === undefined ? object.body : decrypt(secret, createdAt, object.body)
  }

  /** Removes all backups but the newest ones. */
  async prune(keep: number): Promise<void> {
    await this.#deps.objects.deleteMany((await this.list()).slice(keep).map(({ key }) => key))
  }
}

const digestOf = (body: Buffer) => hash('sha256', body).slice(0, 16)

/** Returns the refusal of a plain backup that would follow an encrypted one. */
export function plainAfterEncrypted(newest: string): BackupError {
  return new BackupError(
    `the newest backup, ${newest}, is encrypted, and DIRECTORY_BACKUP_KEY is not set: ` +
      'set it, or insist on a backup in plain text with --plain',
  )
}

function parseKey(root: string, key: string, bytes: number): Backup | undefined {
  const [, name, year, month, day, hour, minute, second, ms, , encrypted] = NAME.exec(key.slice(root.length)) ?? []
  if (name === undefined) return undefined
  const createdAt = `${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`
  return { key, name, createdAt, bytes, isEncrypted: encrypted !== undefined }
}

async function* textOf(lines: AsyncIterable<Line>, contents: { workspaces: number; records: number }) {
  for await (const line of lines) {
    if (line.kind === 'workspace') contents.workspaces++
    if (line.kind !== 'end') contents.records++
    yield `${JSON.stringify(line)}\n`
  }
}

/** A backup that cannot be restored, or a directory that cannot be backed up. The message names the reason. */
class BackupError extends Error {
  override readonly name = 'BackupError'
}

/**
 * Encrypts bytes with a key of the operator, a text of any form. The time of the backup is covered too, so that an old backup
 * cannot be presented as a new one.
 */
function encrypt(key: string, createdAt: string, bytes: Buffer): Buffer {
  return sealBytes(derive(key), createdAt, bytes)
}

/** Returns the bytes that were encrypted. Throws a BackupError unless all of them are as they were encrypted with this key. */
function decrypt(key: string, createdAt: string, sealed: Buffer): Buffer {
  try {
    return openBytes(derive(key), createdAt, sealed)
  } catch (error) {
    throw new BackupError(
      'the backup cannot be decrypted: DIRECTORY_BACKUP_KEY is another key, or the backup was changed',
      { cause: error },
    )
  }
}

function derive(key: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', 'penstock directory backup', 32))
}
