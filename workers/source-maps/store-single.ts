import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { SourceMapJob } from '../../schemas/queues/source-maps.ts'
import type { Retry } from '../../shared/concurrency/retry.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { MapStart } from '../../shared/json/map-start.ts'
import { sourceMapKey } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { budgetMember, overUploadBudget, uploadBudgetKeys } from '../../shared/queue/upload-budget.ts'
import { uploadKeys } from '../../shared/queue/upload-keys.ts'
import { errorFields, PermanentError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import { JsonScanner } from '../decode/json-scanner.ts'
import { SOURCE_MAP_COST_LIMIT_BYTES, sourceMapCost } from '../decode/source-map-scanner.ts'
import { TOO_COSTLY } from './map-contents.ts'
import { MapDigester, type MapDigests, mapMetadata } from './map-digests.ts'
import { type Digested, digestedText } from './part-claims.ts'
import { deliverVerdict } from './publish-verdict.ts'

/** Dependencies of storing a whole source map. */
export interface StoreSingleDeps {
  readonly redis: Redis
  readonly objects: Pick<ObjectStore, 'head' | 'putStream'>
  readonly releases: Pick<ReleaseStore, 'addStoredMaps' | 'useMap'>
  readonly logger: Logger
  readonly retry: Retry
}

/** The outcome of storing a whole source map. */
export type StoredSingle = {
  readonly outcome: 'stored' | 'known' | 'not_a_map' | 'refused'
  readonly storedBytes: number
  /** Why nothing of the upload is kept. Its client was sent the same reason. */
  readonly refusal?: Reason
}

/** Bytes that are scanned per turn of the event loop, about a millisecond, so that locks are renewed in between. */
const SCAN_BYTES = 128 * 1024
/** Bytes that are digested or written per turn of the event loop. */
const PIECE_BYTES = 256 * 1024

/** Stores a whole source map, once per workspace, records it for its path, and publishes the verdict to the waiting edge. */
export async function storeSingle(
  deps: StoreSingleDeps,
  frame: PayloadFrame,
  job: Extract<SourceMapJob, { kind: 'single' }>,
): Promise<StoredSingle> {
  const { redis, releases, logger } = deps
  const { body, workspaceId } = frame
  const fault = await sourceMapFault(body)
  if (fault !== undefined) {
    const message = `the body ${fault}`
    await deliverVerdict(redis, job.attempt, { ok: false, code: 'REQUEST_INVALID', message })
    return { outcome: 'not_a_map', storedBytes: 0, refusal: { label: 'REQUEST_INVALID', detail: message } }
  }
  const digests = await digest(body)
  const map = { sha256: digests.sha256, size: body.length }
  const objectKey = sourceMapKey(workspaceId, map.sha256)
  try {
    const isNew = await deps.retry('store a source map', async () => {
      // Before the look-up: what exists or is written after this stays.
      await releases.useMap(workspaceId, map.sha256)
      return putUnlessStored(deps, objectKey, body, digests)
    })
    await releases.addStoredMaps(workspaceId, [map.sha256])
    if (!(await recordSingle(redis, { ...frame, slug: job.slug }, job.path, map))) {
      const { code, message } = overUploadBudget('path')
      await deliverVerdict(redis, job.attempt, { ok: false, code, message })
      return { outcome: 'refused', storedBytes: isNew ? map.size : 0, refusal: { label: code, detail: message } }
    }
    await deliverVerdict(redis, job.attempt, { ok: true, value: { objectKey } })
    return isNew ? { outcome: 'stored', storedBytes: map.size } : { outcome: 'known', storedBytes: 0 }
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error
    logger.error({ workspaceId, slug: job.slug, ...errorFields(error) }, 'a source map failed permanently')
    const message = 'the source map could not be stored'
    await deliverVerdict(redis, job.attempt, { ok: false, code: 'INTERNAL', message })
    return { outcome: 'refused', storedBytes: 0, refusal: { label: 'INTERNAL', detail: message } }
  }
}

const RECORD_SINGLE = queueScript('uploads/record-single')

/**
 * Records the last single upload of a path, until 24 h after that of the release. Returns false, and records nothing, if the
 * uploads of the workspace would take too much memory.
 */
async function recordSingle(redis: Redis, release: ReleaseKey, path: string, map: Digested): Promise<boolean> {
  const { sums, ends, sealed } = uploadBudgetKeys(release.workspaceId)
  const keys = [uploadKeys(release).singles, sums, ends, sealed]
  return (await RECORD_SINGLE.run(redis, keys, [path, digestedText(map), budgetMember(release)])) === 1
}

/**
 * Returns why these bytes are not a source map, or undefined if they are one (docs/api/releases.md#source-map-single): a JSON
 * object with `version: 3` and `mappings`, or an index map with `sections`, that is not too expensive to parse. A byte order
 * mark and `)]}'` may come before it. Builds no value of the JSON.
 */
export async function sourceMapFault(body: Buffer): Promise<string | undefined> {
  const scanner = new JsonScanner(['version', 'mappings', 'sections'])
  const start = new MapStart().skip(body)
  if (start < 0) return 'is not JSON'
  for (let at = start; at < body.length; at += SCAN_BYTES) {
    if (at > start) await nextTurn()
    if (!scanner.add(body.subarray(at, at + SCAN_BYTES))) return 'is not JSON'
    if (sourceMapCost(body.length, scanner.values) > SOURCE_MAP_COST_LIMIT_BYTES) return TOO_COSTLY
  }
  if (!scanner.end()) return 'is not JSON'
  const version = scanner.members.get('version')
  if (typeof version !== 'object' || Number(version.number) !== 3) return 'is not a source map: version must be 3'
  if (scanner.members.get('sections') === 'array' || scanner.members.get('mappings') === 'string') return undefined
  return 'is not a source map: it must have mappings (a string) or sections (an array)'
}

/** Returns whether the object was written. An object of this key has the same bytes, since the key is their digest. */
async function putUnlessStored(
  { objects }: StoreSingleDeps,
  key: string,
  body: Buffer,
  digests: MapDigests,
): Promise<boolean> {
  if ((await objects.head(key)) !== undefined) return false
  await objects.putStream(key, piecesOf(body), body.length, {
    contentType: 'application/json',
    metadata: mapMetadata(digests),
  })
  return true
}

async function digest(body: Buffer): Promise<MapDigests> {
  const digester = new MapDigester()
  for await (const piece of piecesOf(body)) digester.update(piece)
  return digester.digest()
}

async function* piecesOf(body: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    if (at > 0) await nextTurn()
    yield body.subarray(at, at + PIECE_BYTES)
  }
}
