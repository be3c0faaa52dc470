import { PROBLEMS, type Problem } from '../../schemas/http/problems.ts'

/** Request line and headers. Readable only while `accept` runs, because uWS frees them when it returns. */
export interface RequestHead {
  readonly method: string
  /**
   * Returns a decoded path parameter. It is empty if its percent-encoding is malformed: then it names nothing, which a route
   * finds once the credential is accepted.
   */
  param(name: string): string
  /**
   * Returns the first value of a name, decoded like URLSearchParams: `+` is a space, malformed encodings stay
   * unchanged.
   */
  query(name: string): string | undefined
  /** Returns the whole query as it was sent, without its question mark, for names that may be repeated. */
  rawQuery(): string
  /** Returns the value of a header; undefined if it is absent or empty. */
  header(lowercaseName: string): string | undefined
  /** Undefined for a chunked body and for no body. */
  readonly contentLength: number | undefined
  /**
   * Returns a signal that fires when the connection closes before the response is complete. The work for it can then end.
   */
  closed(): AbortSignal
}

/** A response header. */
export type Header = readonly [name: string, value: string]

/**
 * A response. Header values must come from this program or be checked by it: uWS writes them unchanged, even line
 * breaks.
 */
export interface Reply {
  readonly status: number
  readonly headers?: readonly Header[]
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>
  /** Runs once, when the response is complete or its connection is closed. */
  readonly onEnd?: () => void
}

/** What a handler returns that answers through its request (`AnswerableRequest`), before it returns or later. */
export const ANSWERED = Symbol('answered')

/**
 * Handles the whole body, called once. The bytes may belong to uWS, which frees them when the handler returns or first
 * awaits, so the handler must copy what it keeps before that. They count as held until its reply is ready.
 */
export type BodyHandler = (body: Buffer, request: HeldBody) => Reply | Promise<Reply> | typeof ANSWERED

/** A request, as the log and its client name it. */
export interface IdentifiedRequest {
  /**
   * Id of the request (docs/api/requests.md#request-ids): the client's, else one that is made when it is first used.
   */
  readonly requestId: string
}

/**
 * How the commit of a request ended: `acknowledged` if it is on disk in Redis, `unconfirmed` if Redis did not confirm that in
 * time.
 */
export type CommitOutcome = 'acknowledged' | 'unconfirmed'

/** A request that is counted when it ends. */
interface CountedRequest extends IdentifiedRequest {
  /**
   * States how the commit of the request ended. A request without a commit is counted by the status of its response. The
   * response has the id of the receipt if there is one. Its bytes must not change before the response is written.
   */
  committed(outcome: CommitOutcome, arrivedAtMs: number, receiptId?: Uint8Array): void
}

/** A request that its handler can answer without a promise, so that one loop answers all requests of a commit. */
export interface AnswerableRequest extends CountedRequest {
  /** Answers the request. */
  answer(reply: Reply): void
  /** Answers the request with a problem, as its route renders it. */
  refuse(problem: Problem): void
}

/** Counts the requests of known senders when they end. */
export interface RequestCounter {
  /**
   * Counts a request of `owner` that has a response: how its commit ended, or else the status. `arrivedAtMs` is undefined if
   * there was no commit. A client that leaves before its body is complete gets no response.
   */
  ended(owner: string, end: CommitOutcome | number, arrivedAtMs: number | undefined): void
  /** Counts a request that is refused for a quota of its key. It ends as any other. */
  overQuota(owner: string): void
}

/** The memory of a body, for a handler that replies long after it has passed the body on. */
export interface HeldBody extends AnswerableRequest {
  /** Stops counting the bytes as held. To be called only after the handler has returned its promise. */
  release(): void
}

/** The body of a request, before `accept` has decided on it. */
export interface ArrivingBody extends IdentifiedRequest {
  /**
   * Names whose memory the body takes: a surface or a workspace. Called once the credential is accepted, before the decision.
   * All owners share the memory of the server fairly (`FairShares`). Bodies without an owner count as those of one.
   * `counter` counts the request when it ends.
   */
  belongsTo(owner: string, counter?: RequestCounter): void
  /** Renders the problems of this request in its own way instead of that of its route. */
  renderWith(render: (problem: Problem) => Reply): void
}

/** Decision of `accept`: a reply, without reading the body, or a handler of the body. */
export type Decision = Reply | BodyHandler

/** A route of the server. `operationRoute` makes it from an operation. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Pattern of uWS, such as `/v3/findings/:findingId/traces/:traceId`. */
  readonly path: string
  /** 0 for routes without a body. */
  readonly bodyLimitBytes: number
  /** Whether preflights are answered, and any origin may read every response, problems included. */
  readonly cors?: boolean
  /** Refusal of a body over the limit; REQUEST_INVALID with status 413 unless given. */
  readonly overLimit?: Problem | undefined
  /** Makes the reply of a problem; `problemReply` unless given. */
  readonly renderProblem?: ((problem: Problem) => Reply) | undefined
  /** Decides on the head alone, before any byte of the body counts. Must read the head before its first await. */
  accept(head: RequestHead, body: ArrivingBody): Decision | Promise<Decision>
}

/**
 * Returns the common reply of a problem (docs/api/requests.md#problems): `{ code, message, service }`, and its
 * `Retry-After`.
 */
export function problemReply(problem: Problem): Reply {
  const { status, service } = PROBLEMS[problem.code]
  return {
    status: problem.status ?? status,
    headers: problemHeaders(problem),
    body: JSON.stringify({ code: problem.code, message: problem.message, service: problem.service ?? service }),
  }
}

/** Thrown by the source of a streamed body that finds a problem. Before its first chunk, the problem is the response. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly problem: Problem

  constructor(problem: Problem, options?: ErrorOptions) {
    super(problem.message, options)
    this.problem = problem
  }
}

/** Forbids browsers to guess another type from the bytes. */
export const NO_SNIFF: Header = ['x-content-type-options', 'nosniff']
/** Forbids caches to keep a response, because the caller may lose access at any time, and what is refused may exist later. */
export const NO_STORE: Header = ['cache-control', 'no-store']

/** Returns the headers of a problem, in every form: content type, delay and challenge (docs/api/credentials.md#challenges). */
export function problemHeaders(problem: Problem, contentType = 'application/json'): Header[] {
  const headers: Header[] = [['content-type', contentType], NO_SNIFF, NO_STORE]
  if (problem.retryAfterSeconds !== undefined) headers.push(['retry-after', String(problem.retryAfterSeconds)])
  const challenge = challengeOf(problem)
  if (challenge !== undefined) headers.push(['www-authenticate', challenge])
  return headers
}

const PUBLIC_KEY_CHALLENGE = 'ApiKey realm="penstock", header="x-service-public-key", query="public_key"'
const BEARER_CHALLENGE = 'Bearer realm="penstock"'

/** Returns the value of `WWW-Authenticate` (RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9728 section 5.1). */
function challengeOf({ code, missing, resourceMetadata }: Problem): string | undefined {
  if (code === 'AUTH_PK_INVALID') return `${PUBLIC_KEY_CHALLENGE}, error="invalid_key"`
  if (code !== 'AUTH_MISSING') return undefined
  if (missing === 'publicKey') return PUBLIC_KEY_CHALLENGE
  const metadata = resourceMetadata === undefined ? '' : `, resource_metadata="${resourceMetadata}"`
  return `${BEARER_CHALLENGE}${missing === 'bearer' ? '' : ', error="invalid_token"'}${metadata}`
}

const JSON_HEADERS: readonly Header[] = [['content-type', 'application/json'], NO_SNIFF]

/** Returns the reply with a JSON body. `headers` must name its content type, if given. */
export function jsonReply(value: unknown, status = 200, headers = JSON_HEADERS): Reply {
  return { status, headers, body: JSON.stringify(value) }
}
