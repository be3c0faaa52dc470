import type { SignedFile } from '../../../../schemas/http/source-maps/schemas.ts'
import type { UploadOutcome } from '../upload-report.ts'
import type { BuildApi } from './build-api.ts'
import { BuildFailure } from './build-failure.ts'
import { inBlocks, readEdited } from './edited-file.ts'
import { forEach } from './for-each.ts'
import { type HttpAnswer, type HttpClient, problemCode, RequestFailed } from './http-client.ts'
import type { PreparedMap } from './prepare-maps.ts'

/** Dependencies of the upload of the maps. */
export interface UploadMapsDeps {
  readonly api: Pick<BuildApi, 'sign' | 'putPart'>
  readonly http: Pick<HttpClient, 'send'>
  readonly now: () => number
  readonly onUploaded: (map: PreparedMap, how: UploadOutcome) => void
  /** Called once, when the object store cannot be reached. All further maps are sent through the service. */
  readonly onStoreUnreachable: (host: string, reason: string) => void
  /** Called when one map has failed, to abort the requests of the others. */
  readonly onFailure: () => void
}

/** Options of `uploadMaps`. */
interface UploadMapsOptions {
  readonly slug: string
  readonly concurrency: number
  /** Sends every map in parts, without trying the object store. */
  readonly byParts: boolean
}

/** What is known about the object store. All uploads of a run share it. */
interface StoreState {
  /** The store has answered at least once, so that a later failure is an outage that ends. */
  hasAnswered: boolean
  /** The store has never answered, and no connection to it was established. */
  isUnreachable: boolean
}

const PART_BYTES = 512 * 1024
/** Limit of the JSON body of one sign request. The service accepts 256 KiB. */
const SIGN_LIMIT_BYTES = 240 * 1024
const SIGN_LIMIT_FILES = 500
/** A presigned URL that expires sooner than this is signed again before it is used. */
const EXPIRY_MARGIN_MS = 60_000
const MAX_SIGNATURES = 3
/** Failed connection attempts after which a store that has never answered counts as unreachable. */
const CONNECTION_ATTEMPTS = 3
/** An upload slower than this counts as stuck. */
const MIN_BYTES_PER_MS = 128

/**
 * Declares the maps and uploads those that the service does not have, each streamed from its file. They are sent to the
 * object store directly, or in parts through the service once the store has proved unreachable. Throws a BuildFailure
 * or a RequestFailed at the first map that cannot be uploaded.
 */
export async function uploadMaps(
  deps: UploadMapsDeps,
  maps: readonly PreparedMap[],
  { slug, concurrency, byParts }: UploadMapsOptions,
): Promise<void> {
  const store: StoreState = { hasAnswered: false, isUnreachable: byParts }
  for (const batch of signBatches(maps)) {
    const signed = await deps.api.sign(slug, batch.map(declaration))
    const upload = async (map: PreparedMap, i: number) => {
      const file = at(signed, i)
      if ('alreadyUploaded' in file) return deps.onUploaded(map, 'known')
      const outcome = store.isUnreachable ? undefined : await putToStore(deps, slug, store, map, file)
      if (outcome === undefined) await putParts(deps.api, slug, map)
      deps.onUploaded(map, outcome ?? 'parts')
    }
    await forEach(batch, { concurrency, onFailure: deps.onFailure }, upload)
  }
}

/**
 * Uploads a map to its presigned URL, which is signed again when it has expired. Returns `known` if the service has got
 * the map meanwhile, and undefined if the store is unreachable. Throws a BuildFailure if the store refuses the map, and
 * a RequestFailed.
 */
async function putToStore(
  deps: UploadMapsDeps,
  slug: string,
  store: StoreState,
  map: PreparedMap,
  first: SignedFile,
): Promise<'signed' | 'known' | undefined> {
  let signed = first
  for (let signatures = 1; 'uploadUrl' in signed; signatures++) {
    const isFresh = Date.parse(signed.expiresAt) - deps.now() >= EXPIRY_MARGIN_MS
    // A URL that was just signed again is used in any case, because the clocks may differ.
    if (isFresh || signatures > 1) {
      const answer = await put(deps, store, map, signed.uploadUrl)
      if (answer === undefined) return undefined
      if (answer.status >= 200 && answer.status < 300) return 'signed'
      // 403 means an expired signature and for every other invalid one.
      if (answer.status !== 403 || signatures === MAX_SIGNATURES) throw refused(map, answer)
    }
    signed = at(await deps.api.sign(slug, [declaration(map)]), 0)
  }
  return 'known'
}

/** Sends one PUT request. Returns undefined if the store is unreachable. */
async function put(
  deps: UploadMapsDeps,
  store: StoreState,
  map: PreparedMap,
  url: string,
): Promise<HttpAnswer | undefined> {
  try {
    const answer = await deps.http.send({
      what: `uploading ${map.path}`,
      method: 'PUT',
      url,
      headers: { 'content-type': 'application/json', 'content-length': String(map.size) },
      body() {
        // Bytes that were appended to the file meanwhile are not sent, because fetch would hang on them. A changed file
        // has another digest.
        const content = readEdited(map)
        return { content, close: () => void content.return(undefined) }
      },
      deadlineMs: 60_000,
      transferMs: Math.ceil(map.size / MIN_BYTES_PER_MS),
      giveUp(failure, attempt) {
        if (failure.kind === 'status') store.hasAnswered = true
        const isUnreachable = failure.kind === 'unreachable' && !store.hasAnswered
        return isUnreachable && (store.isUnreachable || attempt >= CONNECTION_ATTEMPTS)
      },
    })
    store.hasAnswered = true
    return answer
  } catch (error) {
    if (!(error instanceof RequestFailed) || error.failure.kind !== 'unreachable' || store.hasAnswered) throw error
    if (!store.isUnreachable) deps.onStoreUnreachable(new URL(url).host, error.failure.reason)
    store.isUnreachable = true
    return undefined
  }
}

function refused(map: PreparedMap, { status, text }: HttpAnswer): BuildFailure {
  const reason = `the object store answered ${status}${problemCode(text)}`
  return new BuildFailure('pipeline_failed', `uploading ${map.path}: ${reason}; --parts uploads through the service`)
}

async function putParts(api: Pick<BuildApi, 'putPart'>, slug: string, map: PreparedMap): Promise<void> {
  let part = 0
  for await (const bytes of inBlocks(readEdited(map), PART_BYTES)) await api.putPart(slug, map.path, part++, bytes)
}

/** Returns the answer for one declared file. `BuildApi.sign` has checked that the answer names every file. */
function at(signed: readonly SignedFile[], index: number): SignedFile {
  const file = signed[index]
  if (!file) throw new Error(`unreachable: file ${index} was declared and not signed`)
  return file
}

function declaration({ path, size, sha256 }: PreparedMap) {
  return { path, size, hash: sha256 }
}

/** Yields the maps in batches, each as large as the body of one sign request allows. */
export function* signBatches(maps: readonly PreparedMap[]): Generator<PreparedMap[]> {
  let batch: PreparedMap[] = []
  let bytes = 0
  for (const map of maps) {
    const size = Buffer.byteLength(JSON.stringify(declaration(map))) + 1
    if (batch.length === SIGN_LIMIT_FILES || (batch.length > 0 && bytes + size > SIGN_LIMIT_BYTES)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(map)
    bytes += size
  }
  if (batch.length > 0) yield batch
}
