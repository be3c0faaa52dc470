import type { Redis } from 'ioredis'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { budgetMember, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import type { UploadKeys } from '../../shared/queue/upload-keys.ts'

/** Digest and size of some bytes. */
export interface Digested {
  /** SHA-256 in hex. */
  readonly sha256: string
  readonly size: number
}

/** The claim of one part of a map: the bytes that its number is reserved for. */
interface PartClaim extends Digested {
  readonly part: number
  /** Whether the object of the part was written. It is deleted once a manifest names the assembled map. */
  readonly stored: boolean
}

/** The parts that were sent of one map. */
export interface PartClaims {
  /** In the order of their numbers. */
  readonly parts: readonly PartClaim[]
  /** The map that was assembled from exactly these parts. */
  readonly assembled: Digested | undefined
}

/** Parses the Redis hash of the parts of one path (`shared/queue/upload-keys.ts`). Returns undefined if no part is claimed. */
export function parsePartClaims(fields: Readonly<Record<string, string>>): PartClaims | undefined {
  const parts: PartClaim[] = []
  for (const [name, value] of Object.entries(fields)) {
    const digested = /^\d+$/.test(name) ? parseDigested(value) : undefined
    if (digested) parts.push({ part: Number(name), stored: `stored:${name}` in fields, ...digested })
  }
  if (parts.length === 0) return undefined
  parts.sort((a, b) => a.part - b.part)
  const [count, ...rest] = (fields.assembled ?? '').split(':')
  const isOfThese = Number(count) === parts.length && missingParts(parts).length === 0
  return { parts, assembled: isOfThese ? parseDigested(rest.join(':')) : undefined }
}

/** Returns the numbers that are missing between 0 and the last part, at most the first `most` of them. */
export function missingParts(parts: readonly { part: number }[], most = 10): number[] {
  const missing: number[] = []
  let next = 0
  for (const { part } of parts) {
    for (; next < part && missing.length < most; next++) missing.push(next)
    next = part + 1
  }
  return missing
}

/** Returns the text form of a digest and size. */
export const digestedText = ({ sha256, size }: Digested) => `${sha256}:${size}`

/** Parses the text form of a digest and size. Returns undefined for any other text. */
export function parseDigested(text: string): Digested | undefined {
  const match = /^([0-9a-f]{64}):(\d+)$/.exec(text)
  return match ? { sha256: match[1] as string, size: Number(match[2]) } : undefined
}

const SETTLE_PART = queueScript('uploads/settle-part')
const RECORD_ASSEMBLED = queueScript('uploads/record-assembled')
const SEAL_PARTS = queueScript('uploads/seal-parts')
const UNSEAL_PARTS = queueScript('uploads/unseal-parts')

/** A part of a map of a release, and the bytes that claim it. */
interface ClaimedPart {
  readonly keys: UploadKeys
  readonly path: string
  readonly part: number
  readonly claim: Digested
}

/** Marks a claimed part as stored. Returns false if its claim was replaced or removed with its release. */
export async function confirmPart(redis: Redis, { keys, path, part, claim }: ClaimedPart): Promise<boolean> {
  return (await SETTLE_PART.run(redis, [keys.parts(path), keys.claimed], [part, digestedText(claim)])) === 1
}

/** Frees the number of a part that cannot be stored. Returns false if the claim was replaced or the part is stored. */
export async function givePartBack(redis: Redis, { keys, path, part, claim }: ClaimedPart): Promise<boolean> {
  const args = [part, digestedText(claim), claim.size]
  return (await SETTLE_PART.run(redis, [keys.parts(path), keys.claimed], args)) === 1
}

/** Records that the map of these parts is stored, so that they are no longer needed. Returns false if a claim has changed. */
export async function recordAssembled(
  redis: Redis,
  key: string,
  parts: readonly Digested[],
  map: Digested,
): Promise<boolean> {
  const record = `${parts.length}:${digestedText(map)}`
  return (await RECORD_ASSEMBLED.run(redis, [key], [record, ...parts.map(digestedText)])) === 1
}

/** The claims of a release. */
export interface ReleaseClaims {
  readonly redis: Redis
  readonly releaseKey: ReleaseKey
  readonly keys: UploadKeys
}

/**
 * Keeps the claims of the parts of these maps for as long as a manifest names the maps. Returns the number of parts of
 * each map.
 */
export async function sealParts(
  { redis, releaseKey, keys }: ReleaseClaims,
  sequence: number,
  maps: readonly { path: string; sha256: string }[],
): Promise<number[]> {
  const { sums, sealed } = uploadBudgetKeys(releaseKey.workspaceId)
  const names = [keys.claimed, keys.sealed, sums, sealed, ...maps.map(({ path }) => keys.parts(path))]
  const args = [budgetMember(releaseKey), sequence, ...maps.map(({ sha256 }) => sha256)]
  return (await SEAL_PARTS.run(redis, names, args)) as number[]
}

/** Lets claims expire whose maps the manifest of this sequence does not name. */
export async function unsealParts(
  { redis, releaseKey, keys }: ReleaseClaims,
  sequence: number,
  paths: readonly string[],
): Promise<void> {
  const { sums, ends, sealed } = uploadBudgetKeys(releaseKey.workspaceId)
  const names = [keys.claimed, keys.sealed, sums, ends, sealed, ...paths.map(path => keys.parts(path))]
  await UNSEAL_PARTS.run(redis, names, [budgetMember(releaseKey), sequence])
}
