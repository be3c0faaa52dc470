import { PROBLEMS, type Problem } from '../../schemas/http/problems.ts'

/** The request line and headers, readable only while `accept` runs: uWS takes them back when it returns. */
export interface RequestHead {
  readonly method: string
  /** Decoded. Malformed percent-encoding is answered 400 REQUEST_INVALID before it gets anywhere. */
  param(name: string): string
  /** The first value of that name, decoded as URLSearchParams does: `+` is a space, malformed encodings stay as they are. */
  query(name: string): string | undefined
  /** An empty header counts as absent. */
  header(lowercaseName: string): string | undefined
  /** Undefined for a chunked body and for none. */
  readonly contentLength: number | undefined
}

export type Header = readonly [name: string, value: string]

/** An answer. Header values must come from this program or be checked by it: uWS writes them as they are, line breaks too. */
export interface Reply {
  readonly status: number
  readonly headers?: readonly Header[]
  /** The receipt of the request, if it was accepted: a header that differs each time, while the others seldom do. */
  readonly receiptId?: string
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>
}

/**
 * Gets the whole body, once. The bytes may be uWS's own: they are gone when the handler returns or first awaits, and what
 * it keeps it must have copied by then. They count as held until its reply is there.
 */
export type BodyHandler = (body: Buffer, held: HeldBody) => Reply | Promise<Reply>

/** For a handler that answers long after it has passed its body on: meanwhile other requests may have the room. */
export interface HeldBody {
  /** The bytes no longer count as held. Only after the handler has returned its promise. */
  release(): void
}

/** A reply refuses (or answers) without the body; a handler wants the body. */
export type Decision = Reply | BodyHandler

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** A uWS pattern: `/v3/findings/:findingId/traces/:traceId`. */
  readonly path: string
  /** 0 for routes without a body. */
  readonly bodyLimitBytes: number
  /** Answers preflights, and lets any origin read every answer, problems too. */
  readonly cors?: boolean
  /** The answer to a body over the limit; REQUEST_INVALID with status 413 unless given. */
  readonly overLimit?: Problem | undefined
  /** How this route words its problems; `problemReply` unless given. */
  readonly renderProblem?: ((problem: Problem) => Reply) | undefined
  /** Decides on the head alone, before a byte of the body counts. Reads what it needs from the head before its first await. */
  accept(head: RequestHead): Decision | Promise<Decision>
}

/** The common rendering (contract section 3): `{ code, message, service }`, with `Retry-After` where the problem has one. */
export function problemReply(problem: Problem): Reply {
  const { status, service } = PROBLEMS[problem.code]
  const headers: Header[] = [['content-type', 'application/json']]
  if (problem.retryAfterSeconds !== undefined) headers.push(['retry-after', String(problem.retryAfterSeconds)])
  return {
    status: problem.status ?? status,
    headers,
    body: JSON.stringify({ code: problem.code, message: problem.message, service: problem.service ?? service }),
  }
}

const JSON_HEADERS: readonly Header[] = [['content-type', 'application/json']]

/** Returns the reply with a JSON body. `headers` must name its content type, if given. */
export function jsonReply(value: unknown, status = 200, headers = JSON_HEADERS): Reply {
  return { status, headers, body: JSON.stringify(value) }
}
