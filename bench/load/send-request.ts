import { type Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

const DEADLINE_MS = 60_000
/** Number of refusals after which a request fails. */
const REFUSED_MAX = 30

/** A request to send. */
export interface SentRequest {
  readonly agent: Agent
  readonly method: 'POST' | 'PUT'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** A 200 response. */
interface Answered {
  readonly body: string
  /** Number of refusals before the 200. */
  readonly refused: number
}

/** Sends a request until its response is 200, and waits for Retry-After in between. Throws on any other status. */
export async function sendRequest(sent: SentRequest): Promise<Answered> {
  for (let refused = 0; ; refused++) {
    const { status, retryAfter, body } = await send(sent)
    if (status === 200) return { body, refused }
    if ((status !== 503 && status !== 429) || refused === REFUSED_MAX) {
      // Without the query, which is a credential in a presigned address.
      throw new Error(`${sent.method} ${new URL(sent.url).pathname} returned ${status}: ${body.slice(0, 300)}`)
    }
    await delay(Math.max(1, retryAfter) * 1_000)
  }
}

function send({ agent, method, url, headers, body }: SentRequest) {
  return new Promise<{ status: number | undefined; retryAfter: number; body: string }>((resolve, reject) => {
    const signal = AbortSignal.timeout(DEADLINE_MS)
    const outgoing = request(url, {
      agent,
      method,
      headers: { ...headers, 'content-length': body.length },
      signal,
    })
    outgoing.once('error', reject)
    outgoing.once('response', response => {
      const retryAfter = Number(response.headers['retry-after'] ?? 0)
      text(response).then(body => resolve({ status: response.statusCode, retryAfter, body }), reject)
    })
    outgoing.end(body)
  })
}
