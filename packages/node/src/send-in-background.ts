import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { Request } from './send-blocking.ts'

interface Options {
  /** How long one request waits for its answer. */
  readonly timeoutMs: number
  /** How long a request is repeated while the service is unavailable. */
  readonly retryForMs: number
}

interface Refusal {
  readonly reason: string
  readonly isTemporary: boolean
  readonly retryAfterMs?: number
}

/** These are taken before an instrumentation replaces them, so own requests are in no metric of the application. */
const { request: requestPlainly } = http
const { request: requestSecurely } = https

const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 15_000
/** By OTLP/HTTP, these answers say that the same request may be sent again. */
const TEMPORARY = new Set([429, 502, 503, 504])

/**
 * Sends a request until it is accepted, and rejects once it is given up. Neither its socket nor its pauses keep the process alive:
 * the exporters of the SDK do, and a program would wait ten seconds at its end while the service is unavailable.
 */
export async function sendInBackground(request: Request, { timeoutMs, retryForMs }: Options): Promise<void> {
  const endsAt = performance.now() + retryForMs
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    const refusal = await post(request, timeoutMs)
    if (refusal === undefined) return
    // Processes that lost the service at once do not come back at once.
    const pauseMs = refusal.retryAfterMs ?? waitMs * (0.8 + Math.random() * 0.4)
    if (!refusal.isTemporary || performance.now() + pauseMs > endsAt) throw new Error(refusal.reason)
    await new Promise(resolve => setTimeout(resolve, pauseMs).unref())
  }
}

/** Returns why the request was not accepted. */
function post({ url, headers, body }: Request, timeoutMs: number): Promise<Refusal | undefined> {
  const request = url.startsWith('https:') ? requestSecurely : requestPlainly
  return new Promise(resolve => {
    const failed = (error: Error) => resolve({ reason: error.message || String(error), isTemporary: true })
    try {
      const sent = request(url, {
        method: 'POST',
        headers: { ...headers, 'content-length': body.length },
        timeout: timeoutMs,
      })
      sent.on('socket', socket => socket.unref())
      sent.on('timeout', () => sent.destroy(new Error(`no answer within ${timeoutMs} ms`)))
      sent.on('error', failed)
      sent.on('response', response => {
        response.on('error', failed)
        response.on('end', () => resolve(refusalOf(response)))
        response.resume()
      })
      sent.end(body)
    } catch (error) {
      resolve({ reason: String(error), isTemporary: false })
    }
  })
}

function refusalOf({ statusCode = 0, statusMessage, headers }: IncomingMessage): Refusal | undefined {
  if (statusCode >= 200 && statusCode < 300) return undefined
  const seconds = Number(headers['retry-after'])
  return {
    reason: `the service answered ${statusCode} ${statusMessage ?? ''}`.trim(),
    isTemporary: TEMPORARY.has(statusCode),
    ...(seconds > 0 && { retryAfterMs: seconds * 1_000 }),
  }
}
