import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { RecordedRelease } from './recorded.ts'

/** Address and credentials of an installation. */
export interface InstallationAccess {
  readonly url: string
  readonly publicKey: string
  readonly secretKey: string
  readonly token: string
}

/** The installation does not answer, refuses something, or takes too long. The message is for the user. */
export class DemoFailure extends Error {}

const REQUEST_MS = 30_000
const SETTLED_MS = 120_000
const POLL_MS = 100
/** Times that a request is sent again after 429 or 503. */
const RETRIES = 30

const receiptSchema = z.object({ receipt: z.object({ status: z.string() }) })
const mapSchema = z.object({ sources: z.array(z.string()) })
const registeredSchema = z.object({ releaseSlug: z.string() })

/** Sends requests to the public API of an installation, and keeps their receipts. */
export class Installation {
  readonly #access: InstallationAccess
  readonly #receipts: string[] = []

  constructor(access: InstallationAccess) {
    this.#access = access
  }

  /** Returns an address of the console. */
  consoleUrl(path: string): string {
    return new URL(`/console/${path}`, this.#access.url).href
  }

  /** Sends what a surface sends. */
  async send(path: string, body: object | Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    const isBytes = body instanceof Uint8Array
    const type = isBytes ? 'application/octet-stream' : 'application/json'
    const response = await this.#request('POST', path, isBytes ? new Uint8Array(body) : JSON.stringify(body), {
      'x-service-public-key': this.#access.publicKey,
      'content-type': type,
      ...headers,
    })
    const receipt = response.headers.get('x-receipt-id')
    if (receipt !== null) this.#receipts.push(receipt)
  }

  /** Registers a release, and uploads its source map. Resolves when stacks can be resolved by it. */
  async release({ version, script, map }: RecordedRelease): Promise<void> {
    const headers = { authorization: `Bearer ${this.#access.secretKey}`, 'content-type': 'application/json' }
    const registered = await this.#request('POST', '/v3/releases', JSON.stringify({ version }), headers)
    const { releaseSlug } = registeredSchema.parse(await registered.json())
    const maps = `/v3/releases/${releaseSlug}/source-maps`
    const path = `${script.slice(1)}.map`
    await this.#request('PUT', `${maps}/upload?${new URLSearchParams({ path })}`, map, headers)
    const hash = createHash('sha256').update(map).digest('hex')
    const files = [{ path, hash, debugId: '', chunkUrl: `~${script}` }]
    const { sources } = mapSchema.parse(JSON.parse(map))
    const completion = JSON.stringify({ files, sourceFileCount: sources.length })
    await this.#request('POST', `${maps}/complete`, completion, headers)
  }

  /** Reads as the user of the token. */
  async read<S extends z.ZodType>(path: string, schema: S): Promise<z.infer<S>> {
    const response = await this.#request('GET', path, undefined, { authorization: `Bearer ${this.#access.token}` })
    return schema.parse(await response.json())
  }

  /** Waits by their receipts until everything that was sent so far is stored. */
  async untilStored(): Promise<void> {
    for (const receipt of this.#receipts.splice(0)) {
      const status = await this.until('what was sent', async () => {
        const path = `/v3/receipts/${encodeURIComponent(receipt)}`
        const headers = { 'x-service-public-key': this.#access.publicKey }
        const answer = await this.#request('GET', path, undefined, headers)
        const { receipt: read } = receiptSchema.parse(await answer.json())
        return read.status === 'queued' ? undefined : read.status
      })
      if (status !== 'stored') throw new DemoFailure(`a request was not stored but ${status}: receipt ${receipt}`)
    }
  }

  /** Waits until `look` returns something other than undefined or false, and returns it. */
  async until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
    const deadline = Date.now() + SETTLED_MS
    for (;;) {
      const seen = await look()
      if (seen !== undefined && seen !== false) return seen
      if (Date.now() > deadline) {
        throw new DemoFailure(
          `${what} cannot be read after ${SETTLED_MS / 1_000} s: see ${this.consoleUrl('pipeline')}`,
        )
      }
      await delay(POLL_MS)
    }
  }

  async #request(
    method: string,
    path: string,
    body: string | Uint8Array<ArrayBuffer> | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<Response> {
    const { url } = this.#access
    for (let attempt = 0; ; attempt++) {
      const options = { method, headers, redirect: 'manual', signal: AbortSignal.timeout(REQUEST_MS) } as const
      const response = await fetch(new URL(path, url), body === undefined ? options : { ...options, body }).catch(
        () => undefined,
      )
      if (response === undefined) throw new DemoFailure(`Penstock does not answer at ${url}: is it running?`)
      if (response.ok) return response
      const text = await response.text()
      const isTemporary = response.status === 429 || response.status === 503
      if (!isTemporary || attempt === RETRIES) {
        throw new DemoFailure(`${method} ${path} was answered with ${response.status}: ${text.slice(0, 500)}`)
      }
      await delay(Math.min(10, Number(response.headers.get('retry-after') ?? 1)) * 1_000)
    }
  }
}
