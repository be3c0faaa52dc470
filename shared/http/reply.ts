import { STATUS_CODES } from 'node:http'
import { RECEIPT_HEADER } from '../../schemas/http/receipts/schemas.ts'
import { writeCorsHeaders } from './cors.ts'
import type { Reply } from './route.ts'
import type { HttpResponse } from './uws.ts'

/** What the connection, not the route, adds to a reply. */
export interface Framing {
  /** Set on routes with CORS when the request has an origin that may be echoed. */
  readonly origin: string | undefined
  /** The answer to a HEAD request. */
  readonly headOnly: boolean
}

export function writeHead(res: HttpResponse, reply: Reply, framing: Framing, willClose: boolean): void {
  if (reply.status !== 200) res.writeStatus(statusLine(reply.status))
  if (reply.headers) for (const [name, value] of reply.headers) res.writeHeader(name, value)
  if (reply.receiptId !== undefined) res.writeHeader(RECEIPT_HEADER, reply.receiptId)
  if (framing.origin !== undefined) writeCorsHeaders(res, framing.origin)
  if (willClose) res.writeHeader('connection', 'close')
}

/** Neither a HEAD nor a 204 nor a 304 has a body; the length is that of the body it stands for (RFC 9110 section 8.6). */
export function hasNoBody(reply: Reply, framing: Framing): boolean {
  return framing.headOnly || reply.status === 204 || reply.status === 304
}

/** Ends the response after the head. uWS 20.51 leaves the request pending for good when `endWithoutBody` is given a length. */
export function endWithoutBody(res: HttpResponse, reply: Reply): void {
  const { body } = reply
  if (reply.status !== 204 && !isStream(body)) res.writeHeader('content-length', String(byteLength(body)))
  res.endWithoutBody()
}

/** Hands the body over as fast as the client takes it, instead of having uWS copy it whole. `done` is called at its end, if it comes. */
export function endGradually(res: HttpResponse, body: Uint8Array, done: () => void): void {
  const send = (offset: number): boolean => {
    const [sent, ended] = res.tryEnd(body.subarray(offset), body.length)
    if (ended) done()
    return sent
  }
  res.onWritable(send)
  send(0)
}

/**
 * Writes the whole answer, framing included, without telling uWS that it ended: `end` takes the handle to the connection
 * away, and the rest of the body could be neither counted nor cut. `writeHeader` is what writes bytes as they are, so the
 * body travels as the value of the last header: one HTTP chunk, its final CRLF the one that uWS adds.
 */
export function writeWithoutEnding(res: HttpResponse, reply: Reply, framing: Framing): void {
  writeHead(res, reply, framing, true)
  const date = new Date().toUTCString()
  // A blank line after the last header, and that is all.
  if (hasNoBody(reply, framing) || isStream(reply.body)) return void res.writeHeader('date', `${date}\r\n`)
  res.writeHeader('date', date)
  const bytes = Buffer.from(reply.body ?? '')
  const chunk = bytes.length === 0 ? [] : [`${bytes.length.toString(16)}\r\n`, bytes, '\r\n']
  const parts = ['chunked\r\n\r\n', ...chunk, '0\r\n']
  res.writeHeader('transfer-encoding', Buffer.concat(parts.map(part => Buffer.from(part))))
}

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
