import type { RequestHead } from './route.ts'
import type { HttpRequest } from './uws.ts'

/** The client's fault, found while reading the head; the message is fit for the client. */
export class MalformedRequestError extends Error {
  override readonly name = 'MalformedRequestError'
}

/**
 * A view of uWS's request, which lives on the stack of the call that brings it. One view serves all requests of a server,
 * since only one head is readable at a time.
 */
export class RequestHeadView implements RequestHead {
  #request: HttpRequest | undefined
  contentLength: number | undefined
  /** A body will follow, though it may turn out empty when it is chunked. */
  bodyFollows = false

  open(request: HttpRequest): void {
    this.#request = request
    // uWS has answered 400 to a malformed length, and to one that stands beside a transfer encoding.
    const contentLength = request.getHeader('content-length')
    this.contentLength = contentLength === '' ? undefined : Number(contentLength)
    this.bodyFollows = contentLength === '' ? request.getHeader('transfer-encoding') !== '' : contentLength !== '0'
  }

  close(): void {
    this.#request = undefined
  }

  get method(): string {
    return this.#readable().getCaseSensitiveMethod()
  }

  param(name: string): string {
    const raw = this.#readable().getParameter(name) ?? ''
    if (!raw.includes('%')) return raw
    const decoded = decodePercent(raw)
    if (decoded === undefined) throw new MalformedRequestError(`${name} is not valid percent-encoding`)
    return decoded
  }

  query(name: string): string | undefined {
    return findQueryValue(this.#readable().getQuery(), name)
  }

  header(lowercaseName: string): string | undefined {
    return this.#readable().getHeader(lowercaseName) || undefined
  }

  #readable(): HttpRequest {
    if (!this.#request) throw new Error('the head of a request was read after accept had returned')
    return this.#request
  }
}

/** Not uWS's own `getQuery(name)`: that one makes other characters of a malformed encoding, or loses the value. */
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
