import { createReadStream } from 'node:fs'
import type { SignedFile } from '../../schemas/http/source-maps/schemas.ts'
import { BuildStop } from './build-stop.ts'
import { type HttpAnswer, type HttpClient, problemCode, RequestFailed } from './http-client.ts'
import type { PreparedMap } from './prepare-map.ts'

export interface PutToStoreDeps {
  readonly http: Pick<HttpClient, 'send'>
  readonly now: () => number
  /** What is known of the store; all uploads of a run share it. */
  readonly store: StoreState
  readonly signAgain: (map: PreparedMap) => Promise<SignedFile>
  /** Called once. */
  readonly onStoreUnreachable: (host: string, reason: string) => void
}

export interface StoreState {
  /** Whatever fails from then on is an outage, which is waited for. */
  hasAnswered: boolean
  /** It has never answered, and no connection to it comes about. */
  isOutOfReach: boolean
}

/** An address that expires sooner is signed again first. */
const EXPIRY_MARGIN_MS = 60_000
const MAX_SIGNATURES = 3
/** Failed connections until a store that has never answered counts as out of reach. */
const CONNECTION_ATTEMPTS = 3
/** Slower than this an upload counts as stuck. */
const MIN_BYTES_PER_MS = 128

/**
 * Puts a map to its presigned address, signed again when it has expired. `known`: the service has it by now. Undefined:
 * the store is out of reach. Throws a BuildStop when the store refuses it, and a RequestFailed.
 */
export async function putToStore(
  deps: PutToStoreDeps,
  map: PreparedMap,
  first: SignedFile,
): Promise<'signed' | 'known' | undefined> {
  let signed = first
  for (let signatures = 1; 'uploadUrl' in signed; signatures++) {
    const isFresh = Date.parse(signed.expiresAt) - deps.now() >= EXPIRY_MARGIN_MS
    // Signed again it is used in any case: the clocks may differ.
    if (isFresh || signatures > 1) {
      const answer = await put(deps, map, signed.uploadUrl)
      if (answer === undefined) return undefined
      if (answer.status >= 200 && answer.status < 300) return 'signed'
      // What has expired is answered 403, and so is every other fault of a signature.
      if (answer.status !== 403 || signatures === MAX_SIGNATURES) throw refused(map, answer)
    }
    signed = await deps.signAgain(map)
  }
  return 'known'
}

async function put(deps: PutToStoreDeps, map: PreparedMap, url: string): Promise<HttpAnswer | undefined> {
  const { store } = deps
  try {
    const answer = await deps.http.send({
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
      giveUp(failure, attempt) {
        if (failure.kind === 'status') store.hasAnswered = true
        const isUnreachable = failure.kind === 'unreachable' && !store.hasAnswered
        return isUnreachable && (store.isOutOfReach || attempt >= CONNECTION_ATTEMPTS)
      },
    })
    store.hasAnswered = true
    return answer
  } catch (error) {
    if (!(error instanceof RequestFailed) || error.failure.kind !== 'unreachable' || store.hasAnswered) throw error
    if (!store.isOutOfReach) deps.onStoreUnreachable(new URL(url).host, error.failure.reason)
    store.isOutOfReach = true
    return undefined
  }
}

function refused(map: PreparedMap, { status, text }: HttpAnswer): BuildStop {
  const reason = `the object store answered ${status}${problemCode(text)}`
  return new BuildStop('pipeline_failed', `uploading ${map.path}: ${reason}; --parts goes through the service instead`)
}
