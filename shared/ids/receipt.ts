import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { receiptIdSchema } from '../../schemas/http/receipts.ts'
import { ADMITTED_QUEUES, type AdmittedQueue } from '../../schemas/queues/names.ts'
import { base32, fromBase32, writeBase32 } from './base32.ts'

/**
 * The receipt of an accepted request: 16 bytes that identify it in every queue, and the id that its client gets.
 *
 *   receipt := commit index(u32)
 *   commit  := arrival of its first request in Unix milliseconds(u48) kind(u8) random(5 bytes)
 *   id      := "rct_" base32(commit) base32(index(20 bits) check(20 bits)) base32(tag) "_" surfaceId(percent-encoded)
 *
 * Numbers are big-endian. The tag is derived from workspace and surface with a secret of the installation, so that ids of
 * another or an invented surface are recognized without a lookup. The check detects damaged ids. A client with an id of a
 * surface can forge others of the same surface. They reveal no more than the credential that is needed to read them.
 */

/** Size of the id of a group commit, with which its receipts begin. */
export const COMMIT_BYTES = 12
/** Size of a receipt. */
export const RECEIPT_BYTES = COMMIT_BYTES + 4
/** Greatest number of receipts of one group commit. */
export const MAX_RECEIPTS = 2 ** 20

const KIND_AT = 6
const COMMIT_CHARACTERS = 20
/** Fills the last character of the commit to five bits. */
const PADDING = Buffer.alloc(1)
const INDEX_CHARACTERS = 8
const TAG_CHARACTERS = 16
const COMMIT_AT = 'rct_'.length
const INDEX_AT = COMMIT_AT + COMMIT_CHARACTERS
const SURFACE_AT = INDEX_AT + INDEX_CHARACTERS + TAG_CHARACTERS + 1

/** Contents of a receipt id. */
interface OpenedReceipt {
  readonly surfaceId: string
  readonly kind: AdmittedQueue
  /** Arrival of the first request of its group commit. The request itself arrived at most some seconds later. */
  readonly arrivedAtMs: number
  readonly commit: Buffer
  readonly index: number
}

/** The part that all receipt ids of a surface have in common, and the memory in which they are written. */
export interface ReceiptSeal {
  readonly checkWord: number
  /** The id that was written last, in ASCII. Its beginning and its end are those of every id of the surface. */
  readonly id: Buffer
  /** The group commit of that id. */
  commit: ReceiptIds | undefined
}

/** Creates the id of a group commit, which is unique. */
export function newCommit(kind: AdmittedQueue, arrivedAtMs: number): Buffer {
  const commit = Buffer.allocUnsafe(COMMIT_BYTES)
  commit.writeUIntBE(Math.floor(arrivedAtMs), 0, KIND_AT)
  commit[KIND_AT] = ADMITTED_QUEUES.indexOf(kind)
  // `randomUUID` has a cache of random bytes. Drawing them each time costs a system call.
  commit.write(randomUUID().slice(-10), KIND_AT + 1, 'hex')
  return commit
}

/** Creates the seal of a surface. */
export function receiptSeal(secret: Buffer, surface: { workspaceId: string; surfaceId: string }): ReceiptSeal {
  const name = JSON.stringify([surface.workspaceId, surface.surfaceId])
  const tag = createHmac('sha256', secret).update(name).digest()
  const unwritten = '-'.repeat(COMMIT_CHARACTERS + INDEX_CHARACTERS)
  const id = `rct_${unwritten}${base32(tag, TAG_CHARACTERS)}_${encodeURIComponent(surface.surfaceId)}`
  return { checkWord: tag.readInt32BE(28), id: Buffer.from(id), commit: undefined }
}

/**
 * The receipt ids of one group commit. They are bytes, because a response has one as a header: of most requests only eight
 * characters of the id before have to be changed.
 */
export class ReceiptIds {
  readonly #head: Buffer
  readonly #word: number

  constructor(commit: Buffer) {
    this.#head = Buffer.from(base32(Buffer.concat([commit, PADDING]), COMMIT_CHARACTERS))
    this.#word = crc32(commit)
  }

  /** Returns the id with this index of the surface with this seal. The next id of the surface is written over it. */
  write(index: number, seal: ReceiptSeal): Buffer {
    const { id, checkWord } = seal
    if (seal.commit !== this) id.set(this.#head, COMMIT_AT)
    seal.commit = this
    writeBase32(id, INDEX_AT, index)
    const check = Math.imul((index ^ this.#word) + checkWord, GOLDEN_RATIO) >>> 12
    writeBase32(id, INDEX_AT + INDEX_CHARACTERS / 2, check)
    return id
  }
}

/** 2^32 divided by the golden ratio. It is odd, so multiplying by it loses nothing, and the upper bits depend on all bits. */
const GOLDEN_RATIO = 0x9e3779b1

/** Reads a genuine receipt id of this workspace. Returns undefined for every other text. */
export function openReceiptId(secret: Buffer, workspaceId: string, id: string): OpenedReceipt | undefined {
  const named = readReceiptId(id)
  if (named === undefined) return undefined
  const { commit, index, surfaceId } = named
  const genuine = new ReceiptIds(commit).write(index, receiptSeal(secret, { workspaceId, surfaceId }))
  const given = Buffer.from(id)
  return genuine.length === given.length && timingSafeEqual(genuine, given) ? named : undefined
}

/** Reads a receipt id, genuine or not. Returns undefined for a text that is not a receipt id. */
export function readReceiptId(id: string): OpenedReceipt | undefined {
  if (!receiptIdSchema.safeParse(id).success) return undefined
  const commit = fromBase32(id.slice(COMMIT_AT, INDEX_AT))
  const indexAndCheck = fromBase32(id.slice(INDEX_AT, INDEX_AT + INDEX_CHARACTERS))
  const surfaceId = decode(id.slice(SURFACE_AT))
  if (commit === undefined || indexAndCheck === undefined || surfaceId === undefined) return undefined
  const kind = ADMITTED_QUEUES[commit[KIND_AT] as number]
  const index = indexAndCheck.readUIntBE(0, 3) >>> 4
  if (kind === undefined) return undefined
  return { surfaceId, kind, arrivedAtMs: commit.readUIntBE(0, KIND_AT), commit, index }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Returns the group commit of a receipt; both in latin1. */
export function commitOf(receipt: string): string {
  return receipt.slice(0, COMMIT_BYTES)
}

/** Returns the index of a receipt in its group commit. */
export function indexOf(receipt: string): number {
  const byte = (at: number) => receipt.charCodeAt(COMMIT_BYTES + at)
  return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0
}
