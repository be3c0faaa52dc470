import { MIB } from '../../../../schemas/units.ts'

/** A request that may be repeated. */
export interface HttpRequest {
  /** Purpose of the request, for messages. URLs may contain secrets and are never shown. */
  readonly what: string
  readonly method: 'POST' | 'PUT'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Creates the body. It is called for every attempt, and the body is closed after the attempt. */
  readonly body: () => RequestBody
  /** Deadline of one attempt. It is never longer than requests are repeated. */
  readonly deadlineMs: number
  /** Time for the bytes of a large body, which is added to the deadline. */
  readonly transferMs?: number
  /** Runs after each failed attempt and returns whether to give up at once. */
  readonly giveUp?: (failure: Failure, attempt: number) => boolean
}

/** The body of one attempt. */
export interface RequestBody {
  readonly content: Buffer | string | AsyncIterable<Uint8Array>
  readonly close?: () => void
}

/** A final answer, successful or not: repeating the request would not change it. */
export interface HttpAnswer {
  readonly status: number
  readonly text: string
}

/** The reason why an attempt failed that may be repeated. `unreachable`: no connection was established. */
export interface Failure {
  readonly kind: 'unreachable' | 'connection' | 'deadline' | 'status'
  readonly reason: string
  readonly retryAfterMs: number
}

/** Dependencies of the HTTP client. */
export interface HttpClientDeps {
  readonly fetch: typeof fetch
  readonly now: () => number
  readonly random: () => number
  readonly delay: (ms: number, abortSignal: AbortSignal) => Promise<void>
  /** Ends every request and every wait. */
  readonly abortSignal: AbortSignal
  readonly onRetry: (what: string, failure: Failure, waitMs: number) => void
}

/** Sends requests of a build to the service and to the object store. */
export interface HttpClient {
  /**
   * Sends a request and repeats it after temporary failures (connection errors, 408, 429, 5xx). Throws a RequestFailed
   * once `retryTimeoutMs` have passed since the first failure. Returns every other status as the answer.
   */
  send(request: HttpRequest): Promise<HttpAnswer>
  /** Makes one attempt. Throws a RequestFailed. */
  sendOnce(request: HttpRequest): Promise<HttpAnswer>
}

/** A request that was given up after temporary failures: the command may be run again. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed'
  readonly failure: Failure

  constructor(what: string, failure: Failure, attempts: number) {
    super(`${what}: ${failure.reason}${attempts > 1 ? ` (${attempts} attempts)` : ''}`)
    this.failure = failure
  }
}

const ANSWER_LIMIT_BYTES = 8 * MIB
/** An attempt has this time also where requests are not repeated. */
const MIN_DEADLINE_MS = 5_000

/** Creates the client. It repeats a request for at most `retryTimeoutMs`. */
export function createHttpClient(deps: HttpClientDeps, { retryTimeoutMs }: { retryTimeoutMs: number }): HttpClient {
  const { now, random, abortSignal } = deps
  const maxDeadlineMs = Math.max(retryTimeoutMs, MIN_DEADLINE_MS)
  return {
    async send(request) {
      let firstFailureAt: number | undefined
      for (let attempts = 1; ; attempts++) {
        const outcome = await attempt(deps, request, maxDeadlineMs)
        if ('status' in outcome) return outcome
        firstFailureAt ??= now()
        const waitMs = retryDelayMs(attempts, outcome.retryAfterMs, random)
        const isOver = now() + waitMs - firstFailureAt > retryTimeoutMs
        if (request.giveUp?.(outcome, attempts) || isOver) throw new RequestFailed(request.what, outcome, attempts)
        deps.onRetry(request.what, outcome, waitMs)
        await deps.delay(waitMs, abortSignal)
      }
    },
    async sendOnce(request) {
      const outcome = await attempt(deps, request, maxDeadlineMs)
      if ('status' in outcome) return outcome
      throw new RequestFailed(request.what, outcome, 1)
    },
  }
}

async function attempt(
  { fetch, now, abortSignal }: HttpClientDeps,
  request: HttpRequest,
  maxDeadlineMs: number,
): Promise<HttpAnswer | Failure> {
  const body = request.body()
  const deadlineMs = Math.min(request.deadlineMs, maxDeadlineMs) + (request.transferMs ?? 0)
  const deadline = AbortSignal.timeout(deadlineMs)
  try {
    const response = await fetch(request.url, {
      method: request.method,
      headers: request.headers,
      body: body.content,
      // Following a redirect would send the key to another server. It is treated like any other answer.
      redirect: 'manual',
      duplex: 'half',
      signal: AbortSignal.any([abortSignal, deadline]),
    })
    const text = await readText(response)
    const { status } = response
    if (status !== 408 && status !== 429 && status < 500) return { status, text }
    const waitMs = retryAfterMs(response.headers.get('retry-after'), now())
    return { kind: 'status', reason: `answered ${status}${problemCode(text)}`, retryAfterMs: waitMs }
  } catch (error) {
    abortSignal.throwIfAborted()
    if (deadline.aborted) return failed('deadline', `no answer within ${Math.round(deadlineMs / 1_000)} s`)
    return connectionFailure(error)
  } finally {
    body.close?.()
  }
}

/**
 * Returns the delay before the next attempt: exponential from 250 ms to 10 s, of which up to half is subtracted at
 * random, and never shorter than the server requests with Retry-After.
 */
export function retryDelayMs(attempt: number, retryAfterMs: number, random: () => number): number {
  const fullMs = Math.min(250 * 2 ** Math.min(attempt - 1, 10), 10_000)
  const delayMs = Math.round(fullMs * (1 - random() / 2))
  if (retryAfterMs === 0) return delayMs
  // Clients that got the same Retry-After at the same moment are spread over the next second.
  const spreadMs = random() * Math.min(1_000, fullMs)
  return Math.max(delayMs, Math.round(retryAfterMs + spreadMs))
}

/**
 * Returns the delay that a `Retry-After` header requests (RFC 9110 10.2.3: seconds or a date), or 0 if it is invalid.
 */
export function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0
  const text = header.trim()
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  const date = /^[A-Za-z]{3}[A-Za-z]*, /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? 0 : Math.max(0, date - now)
}

/** A proxy did not connect to the server. */
export class ProxyRefusal extends Error {
  override readonly name = 'ProxyRefusal'
}

/** No connection was established: the host, the port or the certificate is wrong, or the network blocks the traffic. */
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

/** Turns a network error into a failure. Rethrows every other error, for example that of a file that cannot be read. */
function connectionFailure(error: unknown): Failure {
  const cause = error instanceof TypeError ? error.cause : undefined
  if (!(cause instanceof Error)) throw error
  if (cause instanceof ProxyRefusal) return failed('unreachable', cause.message)
  const code = 'code' in cause ? String(cause.code) : ''
  if (code === 'ENOENT' || code === 'EACCES' || code === 'EIO' || code === 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH') {
    throw new Error(`a file changed or disappeared while it was being sent (${code})`, { cause: error })
  }
  return failed(UNREACHABLE.has(code) ? 'unreachable' : 'connection', code === '' ? cause.message.slice(0, 200) : code)
}

function failed(kind: Failure['kind'], reason: string): Failure {
  return { kind, reason, retryAfterMs: 0 }
}

/**
 * Returns the code in a problem body or in an S3 error, with a space before it. Nothing else of the body is shown,
 * because it may contain the signed request.
 */
export function problemCode(text: string): string {
  const code = /"code":"([A-Z_]{1,64})"/.exec(text)?.[1] ?? /<Code>([A-Za-z]{1,64})<\/Code>/.exec(text)?.[1]
  return code === undefined ? '' : ` ${code}`
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > ANSWER_LIMIT_BYTES) throw new Error(`an answer is longer than ${ANSWER_LIMIT_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
