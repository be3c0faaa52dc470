import { randomUUID } from 'node:crypto'
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { Problem } from '../../../schemas/http/problems.ts'
import { RECEIPT_HEADER } from '../../../schemas/http/receipts.ts'
import { REQUEST_ID_HEADER } from '../../../schemas/http/request-id.ts'
import { KIB } from '../../../schemas/units.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { BodyType } from '../body-type.ts'
import {
  ANSWERED,
  type BodyHandler,
  type CommitOutcome,
  type Decision,
  type HeldBody,
  type Reply,
  type RequestCounter,
  type Route,
} from '../route.ts'
import {
  INTERNAL_ERROR,
  LIMIT_OF_PROBLEM,
  logFault,
  type ServerLimit,
  tooManyArriving,
  tooMuchHeld,
} from '../server/problem.ts'
import { type BodyContext, RequestBody, UNKNOWN_OWNER } from '../server/request-body.ts'
import { readRequestId } from '../server/request-id.ts'
import { announcedLength, framed, MESSAGE_HEAD_BYTES, messageOverLimit, messageProblem, timeoutMs } from './message.ts'
import { grpcProblem } from './status.ts'

/** A method as calls of it are counted and logged, by its path, such as `/package.Service/Method`. */
type CountedRoute = Pick<Route, 'method' | 'path'>

/** A unary method of a service. */
export interface GrpcMethod {
  readonly route: CountedRoute
  /** The most bytes of its message, as sent. */
  readonly limitBytes: number
  /** The encodings of messages that it takes, separated by commas. */
  readonly encodings: string
  /** Decides on the metadata alone. Its problems are those of `grpcProblem`. */
  accept(call: GrpcExchange): Decision | Promise<Decision>
}

/** State that the calls of one server share. */
export interface GrpcContext {
  readonly logger: Logger
  /** The memory of bodies, which the HTTP server of the process has too. */
  readonly bodies: BodyContext
  /** Calls whose stream is open; swept every second. */
  readonly open: Set<{ sweep(): void }>
  readonly observe: (route: CountedRoute, status: number, durationMs: number) => void
  readonly onRefused: (limit: ServerLimit) => void
}

/** Status of a call whose client left before the response, as for HTTP. */
const CLIENT_CLOSED_STATUS = 499
/** After this much of a message, its stream is not read further until the method has decided. */
const UNDECIDED_BYTES = 64 * KIB
/** Sweeps after which a stream is reset whose client does not read the response. */
const UNREAD_SWEEPS = 10

const DEADLINE_PASSED: Problem = {
  code: 'REQUEST_INVALID',
  status: 408,
  message: 'the deadline of the call has passed',
}

/**
 * One unary call, from its metadata to its trailers. It is the head, the type and the body of a request at once, so that a
 * method takes it as a route takes a request over HTTP/1.1.
 */
export class GrpcExchange implements HeldBody, BodyType {
  readonly mediaType = 'application/x-protobuf'
  readonly contentLength = undefined
  /** Known once the message is there: each message states whether it is compressed. */
  contentEncoding = 'identity'
  readonly #context: GrpcContext
  readonly #method: GrpcMethod
  readonly #stream: ServerHttp2Stream
  readonly #headers: IncomingHttpHeaders
  readonly #body: RequestBody
  readonly #startedAt: number
  readonly #deadlineAt: number
  #owner = UNKNOWN_OWNER
  #counter: RequestCounter | undefined
  #outcome: CommitOutcome | undefined
  #arrivedAtMs: number | undefined
  #receiptId: string | undefined
  #requestId: string | undefined
  #handler: BodyHandler | undefined
  /** Fault of the message that was found before the method decided. It waits, because the credential is checked first. */
  #problem: Problem | undefined
  #isComplete = false
  #answered = false
  #sweeps = 0

  constructor(context: GrpcContext, method: GrpcMethod, stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#context = context
    this.#method = method
    this.#stream = stream
    this.#headers = headers
    this.#body = new RequestBody(context.bodies, MESSAGE_HEAD_BYTES + method.limitBytes, UNKNOWN_OWNER)
    this.#startedAt = performance.now()
    this.#deadlineAt = this.#startedAt + timeoutMs(this.header('grpc-timeout'))
  }

  /** Starts the exchange. */
  start(): void {
    const stream = this.#stream
    this.#context.open.add(this)
    stream.on('data', (chunk: Buffer) => this.#receive(chunk))
    stream.on('end', () => this.#end())
    stream.on('close', () => this.#close())
    let decision: Decision | Promise<Decision>
    try {
      decision = this.#method.accept(this)
    } catch (error) {
      decision = this.#replyToFault(error)
    }
    if (decision instanceof Promise) {
      decision.then(
        decided => this.#decide(decided),
        error => this.#decide(this.#replyToFault(error)),
      )
    } else this.#decide(decision)
  }

  header(lowercaseName: string): string | undefined {
    const value = this.#headers[lowercaseName]
    return (Array.isArray(value) ? value[0] : value) || undefined
  }

  query(): undefined {
    return undefined
  }

  get requestId(): string {
    this.#requestId ??= readRequestId(this) ?? randomUUID()
    return this.#requestId
  }

  belongsTo(owner: string, counter?: RequestCounter): void {
    this.#owner = owner
    this.#counter = counter
    if (!this.#body.assign(owner)) this.#problem ??= tooMuchHeld
  }

  release(): void {
    this.#body.release()
  }

  committed(outcome: CommitOutcome, arrivedAtMs: number, receiptId?: Uint8Array): void {
    this.#outcome = outcome
    this.#arrivedAtMs = arrivedAtMs
    this.#receiptId = receiptId && Buffer.from(receiptId).toString('latin1')
  }

  answer(reply: Reply): void {
    this.#settle(reply)
  }

  refuse(problem: Problem): void {
    const limit = LIMIT_OF_PROBLEM.get(problem)
    if (limit !== undefined) this.#context.onRefused(limit)
    this.#settle(grpcProblem(problem))
  }

  /** Checks for progress. Called every second while the stream is open. */
  sweep(): void {
    if (this.#answered) {
      if (++this.#sweeps >= UNREAD_SWEEPS) this.#stream.destroy()
    } else if (!this.#isComplete) {
      const problem = performance.now() > this.#deadlineAt ? DEADLINE_PASSED : this.#body.sweep()
      if (problem !== undefined) this.refuse(problem)
    }
  }

  #decide(decision: Decision): void {
    if (this.#answered || this.#stream.closed) return
    if (typeof decision !== 'function') {
      this.#settle(decision)
      return
    }
    this.#handler = decision
    if (this.#problem !== undefined) this.refuse(this.#problem)
    else if (this.#isComplete) this.#handle(decision)
    else this.#stream.resume()
  }

  #receive(chunk: Buffer): void {
    if (this.#answered || this.#problem !== undefined) return
    const problem = this.#problemOfKeeping(chunk)
    if (problem === undefined) {
      if (this.#handler === undefined && this.#body.size > UNDECIDED_BYTES) this.#stream.pause()
      return
    }
    this.#problem = problem
    this.#body.release()
    if (this.#handler !== undefined) this.refuse(problem)
  }

  #problemOfKeeping(chunk: Buffer): Problem | undefined {
    const body = this.#body
    const { limitBytes } = this.#method
    if (body.size + chunk.length > MESSAGE_HEAD_BYTES + limitBytes) return messageOverLimit(limitBytes)
    if (!body.append(chunk, false)) return tooMuchHeld
    const length = announcedLength(body.bytes)
    if (length !== undefined && length > limitBytes) return messageOverLimit(limitBytes)
    const isWhole = length !== undefined && body.size >= MESSAGE_HEAD_BYTES + length
    return isWhole || body.takePlace() ? undefined : tooManyArriving
  }

  #end(): void {
    this.#isComplete = true
    this.#body.leavePlace()
    if (this.#handler !== undefined && !this.#answered) this.#handle(this.#handler)
  }

  #handle(handler: BodyHandler): void {
    const encoding = this.header('grpc-encoding') ?? 'identity'
    const bytes = this.#body.bytes
    const problem =
      messageProblem(bytes, encoding) ?? (performance.now() > this.#deadlineAt ? DEADLINE_PASSED : undefined)
    if (problem !== undefined) {
      this.refuse(problem)
      return
    }
    if (bytes[0] === 1) this.contentEncoding = encoding
    try {
      const reply = handler(bytes.subarray(MESSAGE_HEAD_BYTES), this)
      this.#body.forget()
      if (reply === ANSWERED) return
      if (reply instanceof Promise) {
        reply.then(
          settled => this.#settle(settled),
          error => this.#settle(this.#replyToFault(error)),
        )
      } else this.#settle(reply)
    } catch (error) {
      this.#settle(this.#replyToFault(error))
    }
  }

  #settle(reply: Reply): void {
    if (this.#answered) return
    this.#answered = true
    this.#body.release()
    this.#counter?.ended(this.#owner, this.#outcome ?? reply.status, this.#arrivedAtMs)
    const stream = this.#stream
    // The client may have left, but its request may be on disk.
    if (stream.destroyed || stream.closed) return
    this.#context.observe(this.#method.route, reply.status, performance.now() - this.#startedAt)
    if (reply.status === 200) this.#respond(reply)
    else this.#respondWithProblem(reply)
  }

  #respond({ body }: Reply): void {
    const stream = this.#stream
    const trailers = {
      'grpc-status': '0',
      [REQUEST_ID_HEADER]: this.requestId,
      ...(this.#receiptId !== undefined && { [RECEIPT_HEADER]: this.#receiptId }),
    }
    stream.respond(this.#head(), { waitForTrailers: true })
    stream.once('wantTrailers', () => stream.sendTrailers(trailers))
    stream.end(framed(body as Uint8Array | undefined))
  }

  #respondWithProblem({ headers = [] }: Reply): void {
    const stream = this.#stream
    stream.respond(
      { ...this.#head(), ...Object.fromEntries(headers), [REQUEST_ID_HEADER]: this.requestId },
      { endStream: true },
    )
    // The rest of the message is not wanted. A reset that is sent at once would overtake the status.
    if (!this.#isComplete) setImmediate(() => stream.close(constants.NGHTTP2_NO_ERROR))
  }

  #head() {
    return { ':status': 200, 'content-type': 'application/grpc', 'grpc-accept-encoding': this.#method.encodings }
  }

  /** Called when the stream is closed: by the client or by this server. */
  #close(): void {
    this.#context.open.delete(this)
    if (this.#answered) return
    this.#context.observe(this.#method.route, CLIENT_CLOSED_STATUS, performance.now() - this.#startedAt)
    // A handler that still uses the message keeps it counted as held until it settles.
    if (!this.#isComplete || this.#handler === undefined) {
      this.#answered = true
      this.#body.release()
    }
  }

  #replyToFault(error: unknown): Reply {
    logFault(this.#method.route, error, this.#context.logger, this)
    return grpcProblem(INTERNAL_ERROR)
  }
}
