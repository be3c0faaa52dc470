import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { SignedFile } from '../../schemas/endpoints/sign-source-maps.ts'
import type { BuildApi } from './build-api.ts'
import { BuildStop } from './build-stop.ts'
import { forEachAtOnce } from './for-each-at-once.ts'
import { type HttpClient, problemCode, RequestFailed } from './http-client.ts'
import type { PreparedMap } from './prepare-map.ts'
import { readRange } from './replace-file.ts'

export interface UploadMapsDeps {
  readonly api: Pick<BuildApi, 'sign' | 'putPart'>
  readonly http: Pick<HttpClient, 'send'>
  readonly now: () => number
  readonly onUploaded: (map: PreparedMap, how: UploadOutcome) => void
  /** The object store cannot be reached from here: from now on maps go through the service. Called once. */
  readonly onStoreUnreachable: (host: string, reason: string) => void
  /** One map has failed for good: ends the requests of the others. */
  readonly onFailure: () => void
}

/** `signed`: put to its presigned address; `parts`: sent through the service; `known`: the workspace has its bytes already. */
export type UploadOutcome = 'signed' | 'parts' | 'known'

export interface UploadMapsOptions {
  readonly slug: string
  readonly concurrency: number
  /** All by parts, without trying the object store. */
  readonly byParts: boolean
}

const PART_BYTES = 512 * 1024
/** Of the JSON of one sign call: the service takes 256 KiB. */
const SIGN_LIMIT_BYTES = 240 * 1024
const SIGN_LIMIT_FILES = 500
/** An address that expires sooner is signed again first. */
const EXPIRY_MARGIN_MS = 60_000
const SIGNATURES_PER_FILE = 3
/** Failed connections to a store that has never answered, until it counts as unreachable. */
const CONNECTION_ATTEMPTS = 3
/** Slower than this an upload counts as stuck. */
const MIN_BYTES_PER_MS = 128

type PresignedFile = Extract<SignedFile, { uploadUrl: string }>

/**
 * Declares maps and uploads those that the service does not have, each streamed from its file. They go straight to the
 * object store, or in parts through the service once the store has shown to be out of reach. Throws a BuildStop or a
 * RequestFailed at the first map that cannot be uploaded.
 */
export async function uploadMaps(
  deps: UploadMapsDeps,
  maps: readonly PreparedMap[],
  options: UploadMapsOptions,
): Promise<void> {
  const { slug, concurrency } = options
  const store: Store = { answered: false, unreachable: options.byParts }
  for (const batch of signBatches(maps)) {
    const signed = await deps.api.sign(slug, batch.map(declaration))
    const upload = async (map: PreparedMap, i: number) => {
      const file = signed[i]
      if (!file || 'alreadyUploaded' in file) return deps.onUploaded(map, 'known')
      if (!store.unreachable && (await putToStore(deps, slug, store, map, file))) return deps.onUploaded(map, 'signed')
      await putParts(deps.api, slug, map)
      deps.onUploaded(map, 'parts')
    }
    await forEachAtOnce(concurrency, batch, upload, deps.onFailure)
  }
}

interface Store {
  /** It has answered something: whatever fails now is an outage, which is waited for. */
  answered: boolean
  unreachable: boolean
}

/** False when the store turns out to be out of reach. */
async function putToStore(
  deps: UploadMapsDeps,
  slug: string,
  store: Store,
  map: PreparedMap,
  signedFirst: PresignedFile,
): Promise<boolean> {
  let signed: SignedFile = signedFirst
  for (let signatures = 1; ; signatures++) {
    if (Date.parse(signed.expiresAt) - deps.now() < EXPIRY_MARGIN_MS) {
      const again = await signAgain(deps, slug, map)
      if (!again) return true
      signed = again
    }
    try {
      const answer = await put(deps.http, store, map, signed.uploadUrl)
      store.answered = true
      if (answer.status >= 200 && answer.status < 300) return true
      if (answer.status !== 403 || signatures === SIGNATURES_PER_FILE) throw refusedByStore(map, answer)
    } catch (error) {
      if (!(error instanceof RequestFailed) || error.failure.kind !== 'unreachable' || store.answered) throw error
      if (!store.unreachable) deps.onStoreUnreachable(new URL(signed.uploadUrl).host, error.failure.reason)
      store.unreachable = true
      return false
    }
    const again = await signAgain(deps, slug, map)
    if (!again) return true
    signed = again
  }
}

function put(http: Pick<HttpClient, 'send'>, store: Store, map: PreparedMap, url: string) {
  return http.send({
    what: `uploading ${map.path}`,
    method: 'PUT',
    url,
    headers: { 'content-type': 'application/json', 'content-length': String(map.size) },
    body() {
      // What a file has grown by since is left out: fetch would hang on it. Its digest tells.
      const content = createReadStream(map.absolutePath, { end: map.size - 1 })
      return { content, close: () => void content.destroy() }
    },
    deadlineMs: 60_000 + Math.ceil(map.size / MIN_BYTES_PER_MS),
    giveUp({ kind }, attempt) {
      if (kind !== 'unreachable') store.answered = true
      return !store.answered && kind === 'unreachable' && (store.unreachable || attempt >= CONNECTION_ATTEMPTS)
    },
  })
}

/** Undefined when the service has the map by now. */
async function signAgain(deps: UploadMapsDeps, slug: string, map: PreparedMap): Promise<PresignedFile | undefined> {
  const [file] = await deps.api.sign(slug, [declaration(map)])
  return file && 'uploadUrl' in file ? file : undefined
}

function refusedByStore(map: PreparedMap, { status, text }: { status: number; text: string }): BuildStop {
  const reason = `the object store answered ${status}${problemCode(text)}`
  return new BuildStop('pipeline_failed', `uploading ${map.path}: ${reason}; --parts goes through the service instead`)
}

async function putParts(api: Pick<BuildApi, 'putPart'>, slug: string, map: PreparedMap): Promise<void> {
  await using file = await open(map.absolutePath)
  for (let start = 0, part = 0; start < map.size; start += PART_BYTES, part++) {
    const bytes = await readRange(file, start, Math.min(start + PART_BYTES, map.size))
    await api.putPart(slug, map.path, part, bytes)
  }
}

function declaration({ path, size, sha256 }: PreparedMap) {
  return { path, size, hash: sha256 }
}

/** As many files a call as its body has room for. */
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
