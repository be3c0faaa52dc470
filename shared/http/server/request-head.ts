import type { Problem } from '../../../schemas/http/problems.ts'
import type { RequestHead } from '../route.ts'
import type { HttpRequest } from './uws.ts'

/** The exchange to which a request belongs. */
interface Closable {
  /** Fires when the connection closes before the response is complete. */
  readonly closed: AbortSignal
}

const differentLengths: Problem = {
  code: 'REQUEST_INVALID',
  message: 'content-length must not be sent twice with different values',
}
/** uWS takes trailer fields for the next request, and closes the connection before it is answered. */
const announcedTrailers: Problem = { code: 'REQUEST_INVALID', message: 'trailer fields are not supported' }

/**
 * View of the request of uWS, which exists only during the call that brings it. One view serves all requests of a
 * server, because only one head is readable at a time.
 */
export class RequestHeadView implements RequestHead {
  #request: HttpRequest | undefined
  #exchange: Closable | undefined
  contentLength: number | undefined
  /** Whether a body follows. A chunked body may still be empty. */
  bodyFollows = false
  /** The rule of HTTP that the head breaks and uWS does not check. The connection must be closed after the refusal. */
  fault: Problem | undefined
  /** One function for all heads: to look at every header takes 1.1 µs of CPU, of 25 to 70 for a request. */
  readonly #compareLength = (name: string, value: string): void => {
    if (name === 'content-length' && Number(value) !== this.contentLength) this.fault = differentLengths
  }

  open(request: HttpRequest, exchange: Closable): void {
    this.#request = request
    this.#exchange = exchange
    // uWS itself has refused, with 400, a malformed length and a length beside a transfer encoding. It reads the first length.
    const contentLength = request.getHeader('content-length')
    this.fault = undefined
    if (contentLength === '') {
      this.contentLength = undefined
      this.bodyFollows = request.getHeader('transfer-encoding') !== ''
      if (this.bodyFollows && request.getHeader('trailer') !== '') this.fault = announcedTrailers
    } else {
      this.contentLength = Number(contentLength)
      request.forEach(this.#compareLength)
      this.bodyFollows = contentLength !== '0' || this.fault !== undefined
    }
  }

  close(): void {
    this.#request = undefined
    this.#exchange = undefined
  }

  get method(): string {
    return this.#readable().getCaseSensitiveMethod()
  }

  param(name: string): string {
    const raw = this.#readable().getParameter(name) ?? ''
    return raw.includes('%') ? (decodePercent(raw) ?? '') : raw
  }

  query(name: string): string | undefined {
    return findQueryValue(this.#readable().getQuery(), name)
  }

  rawQuery(): string {
    return this.#readable().getQuery() ?? ''
  }

  header(lowercaseName: string): string | undefined {
    return this.#readable().getHeader(lowercaseName) || undefined
  }

  closed(): AbortSignal {
    this.#readable()
    return (this.#exchange as Closable).closed
  }

  #readable(): HttpRequest {
    if (!this.#request) throw new Error('the head of a request was read after accept returned')
    return this.#request
  }
}

/** Replaces `getQuery(name)` of uWS, which changes the characters of a malformed encoding or loses the value. */
function findQueryValue(query: string | undefined, name: string): string | undefined {
  if (!query) return undefined
  for (const pair of query.split('&')) {
    const separator = pair.indexOf('=')
    const rawName = separator === -1 ? pair : pair.slice(0, separator)
    if (decodeQueryText(rawName) === name) return separator === -1 ? '' : decodeQueryText(pair.slice(separator + 1))
  }
  return undefined
}

function decodeQueryText(raw: string): string {
  const spaced = raw.includes('+') ? raw.replaceAll('+', ' ') : raw
  return spaced.includes('%') ? (decodePercent(spaced) ?? spaced) : spaced
}

function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
