import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { LookupFunction } from 'node:net'
import { finished } from 'node:stream'
import { DAY_MS, KIB, SECOND_MS } from '../../schemas/units.ts'
import { findReceiver, type Receiver, type ReceiverDeps } from './find-receiver.ts'
import { type DeliveryOutcome, shownAnswer } from './outcome.ts'

/** Dependencies of {@link post}. */
export interface PostDeps extends ReceiverDeps {
  /** Bounds the whole attempt: looking up the name, connecting, TLS, and the answer. */
  readonly deadlineMs: number
  readonly now: () => number
}

/** A request to a receiver. */
export interface PostRequest {
  readonly url: string
  /** Further headers than those of the body. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON. It is sent byte by byte, as it was signed. */
  readonly body: string
  /** Texts that no outcome may show, such as a routing key in the body. The URL after its host is always one. */
  readonly secrets: readonly string[]
}

/** Bytes of an answer that are read. The connection is closed then. */
const ANSWER_BYTES_MAX = 4 * KIB
const HEADER_BYTES_MAX = 8 * KIB
/** Node waits 250 ms for each of several addresses by default, which is less than a round trip to the other side of the earth. */
const ADDRESS_TIMEOUT_MS = 2 * SECOND_MS
/** An agent of one request neither takes a connection of another one nor a proxy of the environment. */
const ONE_CONNECTION = { keepAlive: false, autoSelectFamilyAttemptTimeout: ADDRESS_TIMEOUT_MS }
/** The longest delay of `retry-table.ts`. */
const RETRY_AFTER_MAX_MS = DAY_MS

/**
 * Sends a POST to a receiver, once, over a connection of its own. Only the addresses that were checked are connected to, and
 * redirects are not followed. The status decides; the body is read for its text alone. Never throws for what a receiver does.
 */
export async function post(deps: PostDeps, request: PostRequest): Promise<DeliveryOutcome> {
  const startedMs = performance.now()
  const end = (outcome: Omit<DeliveryOutcome, 'durationMs'>): DeliveryOutcome => ({
    ...outcome,
    durationMs: Math.round(performance.now() - startedMs),
  })
  const signal = AbortSignal.timeout(deps.deadlineMs)
  try {
    const receiver = await Promise.race([findReceiver(deps, request.url), rejectedBy(signal)])
    if ('reason' in receiver) return end(receiver)
    return end(judge(await exchange(receiver, request, signal), request, deps.now()))
  } catch (error) {
    const isLate = signal.aborted
    return end({
      kind: 'failed',
      reason: isLate ? `no answer within ${deps.deadlineMs / SECOND_MS} s` : faultOf(error),
    })
  }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
}

interface Answer {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly text: string
}

function exchange({ url, addresses }: Receiver, request: PostRequest, signal: AbortSignal): Promise<Answer> {
  const body = Buffer.from(request.body)
  const checked: LookupFunction = (_host, { all }, callback) => {
    const [first] = addresses
    if (all) callback(null, [...addresses])
    else callback(null, first?.address ?? '', first?.family)
  }
  return new Promise((resolve, reject) => {
    const sent = (url.protocol === 'https:' ? https : http).request(url, {
      method: 'POST',
      headers: {
        'user-agent': 'Penstock',
        ...request.headers,
        'content-type': 'application/json',
        'content-length': body.length,
      },
      agent: url.protocol === 'https:' ? new https.Agent(ONE_CONNECTION) : new http.Agent(ONE_CONNECTION),
      lookup: checked,
      maxHeaderSize: HEADER_BYTES_MAX,
      rejectUnauthorized: true,
      signal,
    })
    sent.on('error', reject)
    sent.on('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new Error('the receiver upgraded the connection'))
    })
    sent.on('response', response => {
      // The status is known from here on, so that an error only ends the answer.
      sent.off('error', reject).on('error', () => response.destroy())
      readStart(response, text => {
        sent.destroy()
        const { statusCode: status = 0, headers } = response
        resolve({ status, retryAfter: headers['retry-after'], text })
      })
    })
    sent.end(body)
  })
}

/** Calls back once, with as much of an answer as arrives until its end, its limit, an error or the deadline. */
function readStart(response: IncomingMessage, done: (text: string) => void): void {
  const pieces: Buffer[] = []
  let size = 0
  response.on('data', (piece: Buffer) => {
    pieces.push(piece)
    size += piece.length
    if (size >= ANSWER_BYTES_MAX) response.destroy()
  })
  finished(response, () => done(Buffer.concat(pieces).toString('utf8', 0, ANSWER_BYTES_MAX)))
}

function judge(
  { status, retryAfter, text }: Answer,
  { url, secrets }: PostRequest,
  nowMs: number,
): Omit<DeliveryOutcome, 'durationMs'> {
  const { pathname, search } = new URL(url)
  const answer = shownAnswer(text, [...secrets, url, pathname + search, pathname])
  const seen = { status, ...(answer !== undefined && { answer }) }
  if (status >= 200 && status < 300) return { kind: 'delivered', ...seen }
  if (status === 410) return { kind: 'gone', ...seen, reason: 'the receiver wants no more deliveries (410)' }
  if (status >= 300 && status < 400)
    return { kind: 'failed', ...seen, reason: `redirects are not followed (${status}): use the URL at their end` }
  const retryAfterMs = status === 429 || status === 503 ? readRetryAfter(retryAfter, nowMs) : undefined
  return {
    kind: 'failed',
    ...seen,
    reason: `the receiver answered ${status}`,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

/** Reads a header of seconds or of a date (RFC 9110 section 10.2.3), at most a day. Returns undefined for others. */
function readRetryAfter(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined
  const waitMs = /^\d{1,10}$/.test(header) ? Number(header) * SECOND_MS : Date.parse(header) - nowMs
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), RETRY_AFTER_MAX_MS)
}

/** Reasons by the codes of Node and OpenSSL. Messages of errors are never shown: they may contain what was sent. */
const FAULTS: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, 'the receiver refused the connection'],
  [/^(ECONNRESET|EPIPE)$/, 'the receiver closed the connection without an answer'],
  [
    /^(EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EADDRNOTAVAIL|ERR_SOCKET_CONNECTION_TIMEOUT)$/,
    'the receiver is not reachable',
  ],
  [/^HPE_HEADER_OVERFLOW$/, `the answer has more than ${HEADER_BYTES_MAX} bytes of headers`],
  [/^HPE_/, 'the answer is not HTTP'],
  [/^(ERR_SSL_|EPROTO)/, 'the receiver does not speak TLS as required'],
  [/CERT|SIGNATURE/, 'the certificate of the receiver is not trusted'],
]

function faultOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return FAULTS.find(([pattern]) => pattern.test(code))?.[1] ?? 'the connection failed'
}
