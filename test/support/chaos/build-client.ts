import { setTimeout as delay } from 'node:timers/promises'
import { digestOf, entryOf, mapOf } from '../clients/release-client.ts'

/** A build with a map in two parts. */
export interface SentBuild {
  readonly slug: string
  readonly path: string
  readonly bytes: Buffer
  readonly sha256: string
  /** Whether both parts were acknowledged. The build can be completed then. */
  isUploaded: boolean
  /** Whether a completion was acknowledged. */
  isCompleted: boolean
  /** Answers that must not be: a part or a completion that was refused. */
  readonly faults: string[]
  readonly receiptIds: string[]
}

/** Addresses and credential of a build client. */
interface BuildClientOptions {
  readonly edgeUrls: readonly string[]
  readonly secretKey: string
}

const TIMEOUT_MS = 5_000
/** A build tool gives up after this time. The build is completed at the end of the run. */
const GIVE_UP_MS = 15_000
const PAUSE_MS = 500
const PART_BYTES = 6_000

/** Registers releases, uploads a map in parts for each and completes them, with the retries of a build tool. */
export class BuildClient {
  readonly sent: SentBuild[] = []
  readonly #options: BuildClientOptions
  #requests = 0

  constructor(options: BuildClientOptions) {
    this.#options = options
  }

  /** Sends builds one after the other. */
  async keepSending(isSending: () => boolean): Promise<void> {
    for (let serial = 1; isSending(); serial++) {
      const answer = await this.#repeat(GIVE_UP_MS, 'POST', '/v3/releases', JSON.stringify({ version: `v${serial}` }))
      if (answer?.status === 200) await this.#upload(String(answer.body.releaseSlug), serial)
      await delay(PAUSE_MS)
    }
  }

  /** Completes a build whose parts were acknowledged. */
  async complete(build: SentBuild, withinMs = GIVE_UP_MS): Promise<void> {
    const files = [entryOf(build, { debugId: debugIdOf(build) })]
    const path = `/v3/releases/${build.slug}/source-maps/complete`
    const answer = await this.#repeat(withinMs, 'POST', path, JSON.stringify({ files, sourceFileCount: 1 }), build)
    if (answer?.status === 200) build.isCompleted = true
    else if (answer !== undefined) build.faults.push(`the completion: ${answer.status} ${JSON.stringify(answer.body)}`)
  }

  async #upload(slug: string, serial: number): Promise<void> {
    const bytes = mapOf(`source ${serial}`, 2 * PART_BYTES - (serial % 100))
    const path = `assets/app-${serial}.js.map`
    const build: SentBuild = {
      slug,
      path,
      bytes,
      sha256: digestOf(bytes),
      isUploaded: false,
      isCompleted: false,
      faults: [],
      receiptIds: [],
    }
    this.sent.push(build)
    for (const [part, begin] of [0, PART_BYTES].entries()) {
      const query = new URLSearchParams({ path, part: String(part) })
      const body = bytes.subarray(begin, begin + PART_BYTES)
      const answer = await this.#repeat(GIVE_UP_MS, 'PUT', `/v3/releases/${slug}/source-maps?${query}`, body, build)
      if (answer === undefined) return
      if (answer.status !== 200) build.faults.push(`part ${part}: ${answer.status} ${JSON.stringify(answer.body)}`)
    }
    build.isUploaded = true
    await this.complete(build)
  }

  /** Sends a request until its answer is neither 429 nor 503. Returns undefined if the time is up before. */
  async #repeat(
    withinMs: number,
    method: string,
    path: string,
    body: Uint8Array | string,
    build?: SentBuild,
  ): Promise<{ status: number; body: Record<string, unknown> } | undefined> {
    const { edgeUrls, secretKey } = this.#options
    const until = performance.now() + withinMs
    while (performance.now() < until) {
      const edgeUrl = edgeUrls[this.#requests++ % edgeUrls.length]
      const type = typeof body === 'string' ? 'application/json' : 'application/octet-stream'
      const response = await fetch(edgeUrl + path, {
        method,
        headers: { authorization: `Bearer ${secretKey}`, 'content-type': type },
        body: typeof body === 'string' ? body : new Uint8Array(body),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      }).catch(() => undefined)
      const answer = await response?.json().catch(() => undefined)
      if (response !== undefined && answer !== undefined && response.status !== 429 && response.status < 500) {
        const receiptId = response.headers.get('x-receipt-id')
        if (receiptId !== null) build?.receiptIds.push(receiptId)
        return { status: response.status, body: answer as Record<string, unknown> }
      }
      await delay(PAUSE_MS)
    }
    return undefined
  }
}

/** Returns a debug id that identifies the map of a build. */
function debugIdOf({ sha256 }: Pick<SentBuild, 'sha256'>): string {
  return sha256.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')
}
