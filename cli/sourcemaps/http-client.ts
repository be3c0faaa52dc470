import { TransientError } from '../../shared/runtime/errors.ts'
import { retryAfterMs, retryDelayMs } from './retry-delay.ts'

export interface HttpRequest {
  /** What it is for, in words: addresses may be secret, and are never shown. */
  readonly what: string
  readonly method: 'POST' | 'PUT'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Made anew for each attempt, and closed after it. */
  readonly body: () => RequestBody
  /** Of one attempt. */
  readonly deadlineMs: number
  /** Looked at after each failed attempt; true gives up at once. */
  readonly giveUp?: (failure: Failure, attempt: number) => boolean
}

export interface RequestBody {
  readonly content: Buffer | string | AsyncIterable<Uint8Array>
  readonly close?: () => void
}

/** An answer that is not worth repeating, good or bad. */
export interface HttpAnswer {
  readonly status: number
  readonly text: string
}

/** Why an attempt failed that may be repeated. `unreachable`: no connection came about at all. */
export interface Failure {
  readonly kind: 'unreachable' | 'connection' | 'deadline' | 'status'
  readonly reason: string
  readonly retryAfterMs: number
}

export interface HttpClientDeps {
  readonly fetch: typeof fetch
  readonly now: () => number
  readonly random: () => number
  readonly delay: (ms: number, signal: AbortSignal) => Promise<void>
  /** Ends everything. */
  readonly signal: AbortSignal
  readonly onRetry: (what: string, failure: Failure, waitMs: number) => void
}

export interface HttpClient {
  /**
   * Repeats what fails for a passing reason (connection faults, 408, 429, 5xx) until `retryTimeoutMs` have passed since
   * the first failure, then throws a RequestFailed. Any other status is the answer.
   */
  send(request: HttpRequest): Promise<HttpAnswer>
  /** One attempt. */
  sendOnce(request: HttpRequest): Promise<HttpAnswer>
}

/** A request that was given up. Its failures were passing ones: the whole may be run again. */
export class RequestFailed extends TransientError {
  readonly failure: Failure

  constructor(what: string, failure: Failure, attempts: number) {
    super(`${what}: ${failure.reason}${attempts > 1 ? ` (${attempts} attempts)` : ''}`)
    this.failure = failure
  }
}

const ANSWER_LIMIT_BYTES = 8 * 1024 * 1024

export function createHttpClient(deps: HttpClientDeps, options: { retryTimeoutMs: number }): HttpClient {
  const { now, random, signal } = deps

  async function attempt(request: HttpRequest): Promise<HttpAnswer | Failure> {
    const body = request.body()
    const deadline = AbortSignal.timeout(request.deadlineMs)
    try {
      const response = await deps.fetch(request.url, {
        method: request.method,
        headers: request.headers,
        body: body.content,
        // A redirection would take the key along; it is an answer like any other.
        redirect: 'manual',
        duplex: 'half',
        signal: AbortSignal.any([signal, deadline]),
      })
      const text = await readText(response)
      const { status } = response
      if (status !== 408 && status !== 429 && status < 500) return { status, text }
      const waitMs = retryAfterMs(response.headers.get('retry-after'), now())
      return { kind: 'status', reason: `answered ${status}${problemCode(text)}`, retryAfterMs: waitMs }
    } catch (error) {
      signal.throwIfAborted()
      if (deadline.aborted) return failed('deadline', `no answer within ${Math.round(request.deadlineMs / 1_000)} s`)
      return connectionFailure(error)
    } finally {
      body.close?.()
    }
  }

  return {
    async send(request) {
      let firstFailureAt: number | undefined
      for (let attempts = 1; ; attempts++) {
        const outcome = await attempt(request)
        if ('status' in outcome) return outcome
        firstFailureAt ??= now()
        const waitMs = retryDelayMs(attempts, outcome.retryAfterMs, random)
        const isOver = now() + waitMs - firstFailureAt > options.retryTimeoutMs
        if (request.giveUp?.(outcome, attempts) || isOver) throw new RequestFailed(request.what, outcome, attempts)
        deps.onRetry(request.what, outcome, waitMs)
        await deps.delay(waitMs, signal)
      }
    },
    async sendOnce(request) {
      const outcome = await attempt(request)
      if ('status' in outcome) return outcome
      throw new RequestFailed(request.what, outcome, 1)
    },
  }
}

/** No connection came about: another host, port or certificate is needed, or the network in between lets nothing through. */
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

/** Faults of the network become failures; anything else (a file that cannot be read) is thrown on. */
function connectionFailure(error: unknown): Failure {
  const cause = error instanceof TypeError ? error.cause : undefined
  if (!(cause instanceof Error)) throw error
  const code = 'code' in cause ? String(cause.code) : ''
  if (code === 'ENOENT' || code === 'EACCES' || code === 'EIO' || code === 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH') {
    throw new Error(`a file changed or went while it was sent (${code})`, { cause: error })
  }
  return failed(UNREACHABLE.has(code) ? 'unreachable' : 'connection', code === '' ? cause.message.slice(0, 200) : code)
}

function failed(kind: Failure['kind'], reason: string): Failure {
  return { kind, reason, retryAfterMs: 0 }
}

/** The code of a problem body, or of an S3 error: of anything else nothing is shown, it may hold what was signed. */
export function problemCode(text: string): string {
  const code = /"code":"([A-Z_]{1,64})"/.exec(text)?.[1] ?? /<Code>([A-Za-z]{1,64})<\/Code>/.exec(text)?.[1]
  return code === undefined ? '' : ` ${code}`
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > ANSWER_LIMIT_BYTES) throw new Error(`an answer has over ${ANSWER_LIMIT_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
