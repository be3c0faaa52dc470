import { STATUS_CODES } from 'node:http'
import { RECEIPT_HEADER } from '../../../schemas/http/receipts.ts'
import { REQUEST_ID_HEADER } from '../../../schemas/http/request-id.ts'
import type { Reply } from '../route.ts'
import { writeCorsHeaders } from './cors.ts'
import type { ReadPace } from './read-pace.ts'
import type { HttpResponse } from './uws.ts'

/** Properties of a response that come from the connection, not from the route. */
export interface Framing {
  /** Origin to echo, on routes with CORS. */
  readonly origin: string | undefined
  /** Whether this is the response to a HEAD request. */
  readonly headOnly: boolean
  /** Id of the request. Made when it is first read. */
  readonly requestId: string
  /** Id of the receipt of a request that was accepted, in ASCII. */
  readonly receiptId: Uint8Array | undefined
}

/** Writes status and headers. */
export function writeHead(res: HttpResponse, reply: Reply, framing: Framing, willClose: boolean): void {
  if (reply.status !== 200) res.writeStatus(statusLine(reply.status))
  if (reply.headers) for (const [name, value] of reply.headers) res.writeHeader(name, value)
  if (framing.receiptId !== undefined) res.writeHeader(RECEIPT_HEADER, framing.receiptId)
  res.writeHeader(REQUEST_ID_HEADER, framing.requestId)
  if (framing.origin !== undefined) writeCorsHeaders(res, framing.origin)
  if (willClose) res.writeHeader('connection', 'close')
  // uWebSockets.js closes a connection after 10 seconds without a request. A client that returns after a `Retry-After` of as many
  // would send its request at that moment.
  else if (reply.status === 429 || reply.status === 503) res.writeHeader('keep-alive', 'timeout=10')
}

/** Reports whether the response has no body: one to HEAD, a 204 or a 304 (RFC 9110 section 8.6). */
export function hasNoBody(reply: Reply, framing: Framing): boolean {
  return framing.headOnly || reply.status === 204 || reply.status === 304
}

/**
 * Ends the response after the head, with the length of the body that is left out. The length is written as a header:
 * given to `endWithoutBody`, uWS 20.51 never ends the request.
 */
export function endWithoutBody(res: HttpResponse, reply: Reply): void {
  const { body } = reply
  if (reply.status !== 204 && !isStream(body)) res.writeHeader('content-length', String(byteLength(body)))
  res.endWithoutBody()
}

/** Reports whether no byte follows the head of the response. */
export function isEmpty(reply: Reply, framing: Framing): boolean {
  return !reply.body || hasNoBody(reply, framing)
}

/** Largest response that uWS may copy into its buffer whole. A larger one waits for the client's window. */
const LARGE_REPLY_BYTES = 64 * 1024

/**
 * Ends the response after the head, unless it is large or the client has not read the responses before it: `end` of uWS would
 * add to them without a bound. `endGradually` continues then.
 */
export function endAtOnce(res: HttpResponse, body: string | Uint8Array): boolean {
  return body.length <= LARGE_REPLY_BYTES && res.tryEnd(body, byteLength(body))[1]
}

/**
 * Writes the body as fast as the client reads, instead of letting uWS copy it whole. Calls `done` once all is written. The
 * responses to all slow readers of the same bytes share them.
 */
export function endGradually(res: HttpResponse, content: string | Uint8Array, pace: ReadPace, done: () => void): void {
  const body = typeof content === 'string' ? Buffer.from(content) : content
  let from = 0
  const send = (offset: number): boolean => {
    pace.moved(offset - from)
    from = offset
    const [sent, ended] = res.tryEnd(body.subarray(offset), body.length)
    if (ended) done()
    else pace.wait()
    return sent
  }
  res.onWritable(send)
  send(res.getWriteOffset())
}

/**
 * Writes the whole response, framing included, without ending it in uWS. `end` would invalidate the handle of the
 * connection, and the rest of the request body could be neither counted nor cut. Only `writeHeader` writes bytes
 * unchanged, so the body is the value of the last header: one HTTP chunk, whose final CRLF is the one that uWS adds.
 */
export function writeWithoutEnding(res: HttpResponse, reply: Reply, framing: Framing): void {
  writeHead(res, reply, framing, true)
  const date = new Date().toUTCString()
  // Ends with the blank line after the last header.
  if (hasNoBody(reply, framing) || isStream(reply.body)) return void res.writeHeader('date', `${date}\r\n`)
  res.writeHeader('date', date)
  if (!reply.body) return void res.writeHeader('content-length', '0\r\n')
  const bytes = Buffer.from(reply.body)
  const parts = ['chunked\r\n\r\n', `${bytes.length.toString(16)}\r\n`, bytes, '\r\n', '0\r\n']
  res.writeHeader('transfer-encoding', Buffer.concat(parts.map(part => Buffer.from(part))))
}

/** Reports whether a body is a stream. */
export function isStream(body: Reply['body']): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && !(body instanceof Uint8Array)
}

function byteLength(body: string | Uint8Array | undefined): number {
  return body === undefined ? 0 : Buffer.byteLength(body)
}

const statusLines = new Map<number, string>()

function statusLine(status: number): string {
  let line = statusLines.get(status)
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
    statusLines.set(status, line)
  }
  return line
}
