import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { RECEIPT_KINDS, type ReceiptKind, receiptIdSchema } from '../../schemas/http/receipts/schemas.ts'
import { BASE32_PAIRS, base32, fromBase32 } from './base32.ts'

/**
 * The receipt of an accepted request: 16 bytes that name it wherever it is moved, and the id that its client gets.
 *
 *   receipt := commit index(u32)
 *   commit  := arrival of its first request in Unix milliseconds(u48) kind(u8) random(5 bytes)
 *   id      := "rct_" base32(commit) base32(index(20 bits) check(20 bits)) base32(tag) "_" surfaceId(percent-encoded)
 *
 * Numbers are big-endian. The tag derives from workspace and surface with a secret of the installation: an id of a foreign
 * or invented surface is told without asking any store. The check tells damaged ids. Who has an id of a surface can make up
 * others of the same one: they tell no more than the credential that they are read with.
 */
export const COMMIT_BYTES = 12
export const RECEIPT_BYTES = COMMIT_BYTES + 4
/** Of one commit. */
export const MAX_RECEIPTS = 2 ** 20

const KIND_AT = 6
const COMMIT_CHARACTERS = 20
/** Of the last character, to whole five bits. */
const PADDING = Buffer.alloc(1)
const PLACE_CHARACTERS = 8
const TAG_CHARACTERS = 16
const COMMIT_AT = 'rct_'.length
const PLACE_AT = COMMIT_AT + COMMIT_CHARACTERS
const SURFACE_AT = PLACE_AT + PLACE_CHARACTERS + TAG_CHARACTERS + 1

/** What a receipt names, as its id tells it. */
export interface OpenedReceipt {
  readonly surfaceId: string
  readonly kind: ReceiptKind
  /** Of the first request of its commit: its own is at most some seconds later. */
  readonly arrivedAtMs: number
  readonly commit: Buffer
  readonly index: number
}

/** What the ids of a surface's receipts have in common. */
export interface ReceiptSeal {
  readonly checkWord: number
  /** How they end. */
  readonly suffix: string
}

/** Names a commit that no other has. */
export function newCommit(kind: ReceiptKind, arrivedAtMs: number): Buffer {
  const commit = Buffer.allocUnsafe(COMMIT_BYTES)
  commit.writeUIntBE(Math.floor(arrivedAtMs), 0, KIND_AT)
  commit[KIND_AT] = RECEIPT_KINDS.indexOf(kind)
  // From a cache of random bytes; fresh ones cost a system call.
  commit.write(randomUUID().slice(-10), KIND_AT + 1, 'hex')
  return commit
}

export function receiptSeal(secret: Buffer, place: { workspaceId: string; surfaceId: string }): ReceiptSeal {
  const name = JSON.stringify([place.workspaceId, place.surfaceId])
  const tag = createHmac('sha256', secret).update(name).digest()
  return {
    checkWord: tag.readInt32BE(28),
    suffix: `${base32(tag, TAG_CHARACTERS)}_${encodeURIComponent(place.surfaceId)}`,
  }
}

/** Makes ids of the receipts of one commit: at each place, for its surface. */
export function receiptIds(commit: Buffer): (index: number, seal: ReceiptSeal) => string {
  const head = `rct_${base32(Buffer.concat([commit, PADDING]), COMMIT_CHARACTERS)}`
  const commitWord = crc32(commit)
  return (index, { checkWord, suffix }) => {
    const check = Math.imul((index ^ commitWord) + checkWord, GOLDEN_RATIO) >>> 12
    const place = `${BASE32_PAIRS[index >>> 10]}${BASE32_PAIRS[index & 1023]}${BASE32_PAIRS[check >>> 10]}`
    return `${head}${place}${BASE32_PAIRS[check & 1023]}${suffix}`
  }
}

/** 2^32 divided by it: odd, so that multiplying by it loses nothing, and its upper bits depend on all. */
const GOLDEN_RATIO = 0x9e3779b1

/** What a genuine id of a surface in this workspace names; undefined for every other text. */
export function openReceiptId(secret: Buffer, workspaceId: string, id: string): OpenedReceipt | undefined {
  const named = readReceiptId(id)
  if (named === undefined) return undefined
  const { commit, index, surfaceId } = named
  const genuine = Buffer.from(receiptIds(commit)(index, receiptSeal(secret, { workspaceId, surfaceId })))
  const given = Buffer.from(id)
  return genuine.length === given.length && timingSafeEqual(genuine, given) ? named : undefined
}

/** What an id names, genuine or not; undefined for a text that is none. */
export function readReceiptId(id: string): OpenedReceipt | undefined {
  if (!receiptIdSchema.safeParse(id).success) return undefined
  const commit = fromBase32(id.slice(COMMIT_AT, PLACE_AT))
  const place = fromBase32(id.slice(PLACE_AT, PLACE_AT + PLACE_CHARACTERS))
  const surfaceId = decode(id.slice(SURFACE_AT))
  if (commit === undefined || place === undefined || surfaceId === undefined) return undefined
  const kind = RECEIPT_KINDS[commit[KIND_AT] as number]
  const index = place.readUIntBE(0, 3) >>> 4
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

/** The commit of a receipt; both in latin1. */
export function commitOf(receipt: string): string {
  return receipt.slice(0, COMMIT_BYTES)
}

/** The place of a receipt in its commit. */
export function indexOf(receipt: string): number {
  const byte = (at: number) => receipt.charCodeAt(COMMIT_BYTES + at)
  return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0
}
