import { open } from 'node:fs/promises'
import type { SignedFile } from '../../schemas/http/source-maps/schemas.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import type { BuildApi } from './build-api.ts'
import type { HttpClient } from './http-client.ts'
import type { PreparedMap } from './prepare-map.ts'
import { putToStore, type StoreState } from './put-to-store.ts'
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
  const store: StoreState = { hasAnswered: false, isOutOfReach: options.byParts }
  const signAgain = async (map: PreparedMap) => at(await deps.api.sign(slug, [declaration(map)]), 0)
  for (const batch of signBatches(maps)) {
    const signed = await deps.api.sign(slug, batch.map(declaration))
    const upload = async (map: PreparedMap, i: number) => {
      const file = at(signed, i)
      if ('alreadyUploaded' in file) return deps.onUploaded(map, 'known')
      const outcome = store.isOutOfReach ? undefined : await putToStore({ ...deps, store, signAgain }, map, file)
      if (outcome === undefined) await putParts(deps.api, slug, map)
      deps.onUploaded(map, outcome ?? 'parts')
    }
    await forEachConcurrently(batch, { concurrency, stopOnFailure: true, onFailure: deps.onFailure }, upload)
  }
}

async function putParts(api: Pick<BuildApi, 'putPart'>, slug: string, map: PreparedMap): Promise<void> {
  const file = await open(map.absolutePath)
  try {
    for (let start = 0, part = 0; start < map.size; start += PART_BYTES, part++) {
      const bytes = await readRange(file, start, Math.min(start + PART_BYTES, map.size))
      await api.putPart(slug, map.path, part, bytes)
    }
  } finally {
    await file.close()
  }
}

/** The answer names every file that was declared: `sign` has checked it. */
function at(signed: readonly SignedFile[], index: number): SignedFile {
  const file = signed[index]
  if (!file) throw new Error(`unreachable: file ${index} was declared and not signed`)
  return file
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
