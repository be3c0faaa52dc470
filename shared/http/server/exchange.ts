import type { Problem } from '../../../schemas/http/problems.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { BodyHandler, Decision, HeldBody, Reply, Route } from '../route.ts'
import { readOrigin } from './cors.ts'
import { bodyStalled, faultReply, logFault, overLimit, renderProblem, tooMuchHeld } from './problem.ts'
import { ReadPace } from './read-pace.ts'
import {
  endGradually,
  endWithoutBody,
  type Framing,
  hasNoBody,
  isStream,
  writeHead,
  writeWithoutEnding,
} from './reply.ts'
import { type HeldBytes, RequestBody } from './request-body.ts'
import type { RequestHeadView } from './request-head.ts'
import { ReplyStream } from './stream.ts'
import type { HttpRequest, HttpResponse } from './uws.ts'

/** State that the exchanges of one server share. */
export interface ExchangeContext {
  readonly logger: Logger
  readonly head: RequestHeadView
  readonly held: HeldBytes
  /** Buffers for bodies that arrive in pieces. */
  readonly memory: BufferPool
  /** Exchanges whose body is still arriving; swept at an interval. */
  readonly arriving: Set<HttpExchange>
  /** Number of sweeps without data after which a body is refused. */
  readonly idleSweeps: number
  /** Number of sweeps for which the rest of an unwanted body is read. */
  readonly discardSweeps: number
  /** Number of bytes of it that are read. */
  readonly discardLimitBytes: number
  /** Time that a client may lag behind the speed at which it must read. */
  readonly readAllowanceMs: number
  readonly observe: ((route: Route, status: number, durationMs: number) => void) | undefined
  readonly now: () => number
  /** Whether the server is stopping. Responses then ask the client to close the connection. */
  stopping: boolean
  inFlight: number
  /** Called when `inFlight` falls to zero. */
  onIdle: (() => void) | undefined
}

/** Status of a request whose client left before the response. HTTP has none; nginx uses this one. */
const CLIENT_CLOSED_STATUS = 499

/**
 * Largest announced body whose rest is left to uWS after an early response. uWS skips the rest and keeps the
 * connection, but cannot be made to stop.
 */
const SKIPPED_REST_BYTES = 64 * 1024

/** Largest response that uWS may copy into its buffer whole. A larger one waits for the client's window. */
const LARGE_REPLY_BYTES = 64 * 1024

/**
 * One request, from its head to the end of its response.
 *
 *   head ── accept ──┬─ Reply ─────────────────────────────┬── answer ──┬─ body complete: end
 *                    └─ BodyHandler ── body ── handler ────┘            └─ body still arriving: discard, then close
 *
 * The response belongs to uWS and becomes invalid at its end or with its connection. After `#finished` it must not be
 * touched (uWS throws). This is the hot path, so it is a class: methods on a prototype instead of a dozen closures per
 * request.
 */
export class HttpExchange implements Framing, HeldBody {
  readonly #context: ExchangeContext
  readonly #route: Route
  readonly #res: HttpResponse
  readonly headOnly: boolean
  readonly #startedAt: number
  origin: string | undefined
  #body: RequestBody | undefined
  #bodyArriving = false
  #restIsSkipped = false
  #handler: BodyHandler | undefined
  /** Fault of the body that was found before `accept` decided. It waits, because the credential is checked first. */
  #bodyProblem: Problem | undefined
  #answered = false
  #finished = false
  #quietSweeps = 0
  #discardedBytes = 0
  #replyStream: ReplyStream | undefined
  #closed: AbortController | undefined
  #onEnd: (() => void) | undefined
  #pace: ReadPace | undefined

  constructor(context: ExchangeContext, route: Route, res: HttpResponse, headOnly: boolean) {
    this.#context = context
    this.#route = route
    this.#res = res
    this.headOnly = headOnly
    this.#startedAt = context.observe ? context.now() : 0
    context.inFlight++
  }

  /** Starts the exchange. Runs inside the handler of uWS, while the request is readable. */
  start(request: HttpRequest): void {
    const { head, arriving, held, memory } = this.#context
    head.open(request, this)
    const { contentLength, bodyFollows } = head
    if (this.#route.cors) this.origin = readOrigin(head)
    let decision: Decision | Promise<Decision>
    try {
      decision = this.#route.accept(head)
    } catch (error) {
      decision = this.#replyToFault(error)
    } finally {
      head.close()
    }

    this.#res.onAborted(() => this.#abort())
    if (bodyFollows) {
      this.#bodyArriving = true
      this.#restIsSkipped = contentLength !== undefined && contentLength <= SKIPPED_REST_BYTES
      this.#body = new RequestBody(held, memory, Math.min(contentLength ?? Infinity, this.#route.bodyLimitBytes))
      arriving.add(this)
      this.#res.onData((chunk, isLast) => this.#receive(chunk, isLast))
      if (contentLength !== undefined && contentLength > this.#route.bodyLimitBytes)
        this.#bodyProblem = overLimit(this.#route)
    }
    if (decision instanceof Promise) {
      decision.then(
        decided => this.#decide(decided),
        error => this.#decide(this.#replyToFault(error)),
      )
    } else this.#decide(decision)
  }

  /** Checks for progress. Called at an interval while the body is arriving. */
  sweep(): void {
    this.#quietSweeps++
    if (this.#answered) {
      if (this.#quietSweeps >= this.#context.discardSweeps) this.#hangUp()
    } else if (this.#quietSweeps > this.#context.idleSweeps) {
      this.#restIsSkipped = false
      this.#refuse(bodyStalled)
    } else {
      // uWS closes a connection whose body brings less than 160 KB in 10 s (measured: after 12 s), and has no setting
      // for it. Resuming restarts these 10 s. A socket must be paused first, or it receives nothing after it is
      // resumed.
      this.#res.pause()
      this.#res.resume()
    }
  }

  release(): void {
    this.#body?.release()
  }

  /** Created on first use, because most routes do not need it. */
  get closed(): AbortSignal {
    this.#closed ??= new AbortController()
    return this.#closed.signal
  }

  #decide(decision: Decision): void {
    if (this.#answered || this.#finished) {
      if (typeof decision !== 'function') decision.onEnd?.()
      return
    }
    if (typeof decision !== 'function') {
      this.#body?.release()
      this.#answer(decision)
    } else if (this.#bodyProblem) this.#refuse(this.#bodyProblem)
    else {
      this.#handler = decision
      if (!this.#bodyArriving) this.#handle(decision)
    }
  }

  #receive(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#finished) return
    if (isLast) {
      this.#bodyArriving = false
      this.#context.arriving.delete(this)
    }
    if (this.#answered) this.#discard(chunk.byteLength, isLast)
    else {
      this.#quietSweeps = 0
      if (!this.#bodyProblem) this.#keep(chunk, isLast)
      if (isLast && this.#handler && !this.#answered) this.#handle(this.#handler)
    }
  }

  #keep(chunk: ArrayBuffer, isLast: boolean): void {
    const body = this.#body
    if (!body) return
    if (body.size + chunk.byteLength > this.#route.bodyLimitBytes) this.#bodyProblem = overLimit(this.#route)
    // Most bodies arrive in one piece after accept has decided, and the handler reads them without a copy.
    else if (isLast && body.size === 0 && this.#handler ? body.lend(chunk) : body.append(chunk, isLast)) return
    else this.#bodyProblem = tooMuchHeld
    body.release()
    if (this.#handler) this.#refuse(this.#bodyProblem)
  }

  #discard(bytes: number, isLast: boolean): void {
    this.#discardedBytes += bytes
    // If head and body arrived together, the response is still corked, and closing now would drop it.
    if (isLast) setImmediate(() => this.#hangUp())
    else if (this.#discardedBytes > this.#context.discardLimitBytes) this.#hangUp()
  }

  #handle(handler: BodyHandler): void {
    try {
      const reply = handler(this.#body?.bytes ?? NO_BYTES, this)
      this.#body?.forget()
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
    this.#body?.release()
    if (this.#finished) reply.onEnd?.()
    else this.#answer(reply)
  }

  #refuse(problem: Problem): void {
    this.#body?.release()
    this.#answer(renderProblem(this.#route, problem, this.#context.logger))
  }

  #answer(reply: Reply): void {
    this.#answered = true
    this.#onEnd = reply.onEnd
    try {
      this.#observe(reply.status)
      if (isStream(reply.body) && !hasNoBody(reply, this)) void this.#stream(reply, reply.body)
      else if (this.#bodyArriving && !this.#restIsSkipped) this.#answerAndDiscard(reply)
      else this.#res.cork(() => this.#write(reply))
    } catch (error) {
      logFault(this.#route, error, this.#context.logger)
      this.#hangUp()
    }
  }

  #answerAndDiscard(reply: Reply): void {
    this.#quietSweeps = 0
    this.#res.cork(() => writeWithoutEnding(this.#res, reply, this))
  }

  #write(reply: Reply): void {
    const { body } = reply
    writeHead(this.#res, reply, this, this.#context.stopping)
    if (hasNoBody(reply, this)) endWithoutBody(this.#res, reply)
    else if (body === undefined || isStream(body)) this.#res.end()
    else if (body.length <= LARGE_REPLY_BYTES) this.#res.end(body)
    else {
      endGradually(this.#res, bytesOf(body), this.#keepPace(), () => this.#finish())
      return
    }
    this.#finish()
  }

  async #stream(reply: Reply, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const stream = new ReplyStream(this.#keepPace())
    this.#replyStream = stream
    let begun = false
    try {
      await stream.send(this.#res, chunks, () => {
        begun = true
        writeHead(this.#res, reply, this, this.#context.stopping)
      })
      this.#finish()
    } catch (error) {
      const fault = this.#replyToFault(error)
      // A chunked body without its end shows the client that the response is incomplete.
      if (begun) this.#hangUp()
      else if (!this.#finished) this.#res.cork(() => this.#write(fault))
    }
  }

  /** Called when the connection is closed: by the client, by uWS or by this server. */
  #abort(): void {
    if (!this.#answered) this.#observe(CLIENT_CLOSED_STATUS)
    // A handler that still uses the body keeps it counted as held until it settles.
    if (this.#bodyArriving || !this.#handler) this.#body?.release()
    this.#finish()
    // A given reason avoids the error with a stack that abort() would create.
    this.#closed?.abort('the connection is closed')
    this.#replyStream?.abandon()
  }

  /** Begins to check how fast the client reads. */
  #keepPace(): ReadPace {
    const { readAllowanceMs, now } = this.#context
    this.#pace = new ReadPace(readAllowanceMs, now, () => this.#hangUp())
    return this.#pace
  }

  #hangUp(): void {
    if (!this.#finished) this.#res.close()
  }

  #finish(): void {
    if (this.#finished) return
    this.#finished = true
    const context = this.#context
    if (this.#bodyArriving) context.arriving.delete(this)
    context.inFlight--
    if (context.inFlight === 0) context.onIdle?.()
    this.#pace?.end()
    this.#onEnd?.()
  }

  #observe(status: number): void {
    const { observe, now } = this.#context
    observe?.(this.#route, status, now() - this.#startedAt)
  }

  #replyToFault(error: unknown): Reply {
    return faultReply(this.#route, error, this.#context.logger)
  }
}

const NO_BYTES = Buffer.alloc(0)

/** Returns the bytes of a body, without a copy of what are bytes already. */
function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body) : body
}
