import { createReleaseClient, type ReleaseClient } from '../clients/release-client.ts'
import { lasting } from '../length.ts'
import type { HostileTenant } from './tenants.ts'

/** Duration of an attack that has no end of its own. It is short in CI. */
export const ATTACK_MS = lasting('HOSTILE_SECONDS', { nightly: 15, else: 2 }) * 1_000
/** An attacker waits for no response longer. */
const REQUEST_DEADLINE_MS = 60_000

/** Headers of an export in protobuf. */
export const PROTOBUF = { 'content-type': 'application/x-protobuf' }
/** Headers of a gzipped export in protobuf. */
export const GZIPPED = { ...PROTOBUF, 'content-encoding': 'gzip' }

/** Client that has the keys of one surface and sends anything. */
export class Attacker {
  readonly edgeUrl: string
  readonly apiUrl: string
  readonly tenant: HostileTenant
  readonly builds: ReleaseClient
  /** Statuses of the responses, or error codes, and how many there were. */
  readonly outcomes: Record<string, number> = {}

  constructor({ edgeUrl, apiUrl }: { edgeUrl: string; apiUrl: string }, tenant: HostileTenant) {
    this.edgeUrl = edgeUrl
    this.apiUrl = apiUrl
    this.tenant = tenant
    this.builds = createReleaseClient(edgeUrl, tenant.secretKey)
  }

  /** Port of the edge, for plain sockets. */
  get edgePort(): number {
    return Number(new URL(this.edgeUrl).port)
  }

  /** Posts with the public key. Never throws: a refused attack has failed, which is the aim. */
  post(path: string, body: Uint8Array | string, headers: Record<string, string>): Promise<number | string> {
    return this.request(this.edgeUrl + path, {
      method: 'POST',
      body: body as Uint8Array<ArrayBuffer>,
      headers: { 'x-service-public-key': this.tenant.publicKey, ...headers },
    })
  }

  /** Posts JSON with the secret key of the surface. */
  build(path: string, body: unknown): Promise<number | string> {
    return this.request(this.edgeUrl + path, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: { authorization: `Bearer ${this.tenant.secretKey}`, 'content-type': 'application/json' },
    })
  }

  /** Calls the API with the session token. */
  call(method: string, path: string, body?: unknown): Promise<number | string> {
    return this.request(this.apiUrl + path, {
      method,
      headers: { authorization: `Bearer ${this.tenant.sessionToken}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }

  async request(url: string, init: RequestInit): Promise<number | string> {
    const outcome = await fetch(url, { signal: AbortSignal.timeout(REQUEST_DEADLINE_MS), ...init }).then(
      async response => {
        await response.arrayBuffer().catch(() => {})
        return response.status
      },
      (error: Error) => (error.cause as NodeJS.ErrnoException | undefined)?.code ?? error.name,
    )
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1
    return outcome
  }
}

/** Repeats a request on `connections` connections until `ms` are over. */
export async function keepAttacking(
  connections: number,
  send: (i: number) => Promise<unknown>,
  ms: number = ATTACK_MS,
): Promise<void> {
  const until = Date.now() + ms
  let next = 0
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (Date.now() < until) await send(next++)
    }),
  )
}

/** Calls `send` for 0 to `count` − 1, `connections` at once. */
export async function sendAll(
  count: number,
  connections: number,
  send: (i: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (next < count) await send(next++)
    }),
  )
}
