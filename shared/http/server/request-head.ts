import type { RequestHead } from '../route.ts'
import type { HttpRequest } from './uws.ts'

/** The exchange to which a request belongs. */
interface Closable {
  /** Fires when the connection closes before the response is complete. */
  readonly closed: AbortSignal
}

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

  open(request: HttpRequest, exchange: Closable): void {
    this.#request = request
    this.#exchange = exchange
    // uWS itself has refused, with 400, a malformed length and a length beside a transfer encoding.
    const contentLength = request.getHeader('content-length')
    this.contentLength = contentLength === '' ? undefined : Number(contentLength)
    this.bodyFollows = contentLength === '' ? request.getHeader('transfer-encoding') !== '' : contentLength !== '0'
  }

  /** Returns whether the head of this exchange is readable now. */
  isOf(exchange: Closable): boolean {
    return this.#exchange === exchange
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
