import { randomUUID } from 'node:crypto'
import type { Problem } from '../../../schemas/http/problems.ts'
import { KIB, MIB } from '../../../schemas/units.ts'
import {
  ANSWERED,
  type ArrivingBody,
  type BodyHandler,
  type CommitOutcome,
  type Decision,
  type HeldBody,
  ProblemError,
  type Reply,
  type RequestCounter,
  type Route,
} from '../route.ts'
import { readOrigin } from './cors.ts'
import type { ExchangeContext } from './exchange-context.ts'
import {
  INTERNAL_ERROR,
  LIMIT_OF_PROBLEM,
  logFault,
  overLimit,
  renderProblem,
  tooManyArriving,
  tooMuchHeld,
} from './problem.ts'
import { ReadPace } from './read-pace.ts'
import {
  endAtOnce,
  endGradually,
  endWithoutBody,
  type Framing,
  hasNoBody,
  isEmpty,
  isStream,
  writeHead,
  writeWithoutEnding,
} from './reply.ts'
import { NO_BYTES, RequestBody, UNKNOWN_OWNER } from './request-body.ts'
import { readRequestId } from './request-id.ts'
import { ReplyStream } from './stream.ts'
import type { HttpRequest, HttpResponse } from './uws.ts'

/** Status of a request whose client left before the response. HTTP has none; nginx uses this one. */
const CLIENT_CLOSED_STATUS = 499

/**
 * Largest announced body whose rest is left to uWS after an early response, so that clients which write the whole body
 * before they read see the response and keep their connection. uWS cannot be made to stop, but closes the connection when
 * less than 160 KB arrive in 10 s.
 */
const SKIPPED_REST_BYTES = MIB

/** After this much of a body, its socket is not read further until `accept` has decided. One read has up to 512 KiB. */
const UNDECIDED_BYTES = 64 * KIB

/** uWS closes a connection whose body brings less than 160 KB in 10 s, unless its timer is restarted before. */
const SWEEPS_PER_RESTART = 4

/**
 * A connection is closed after one of 1,000 responses without a body. uWS does not report that a client leaves those
 * unread, and keeps them all for one that only sends requests. nginx closes a connection after 1,000 requests too.
 */
const EMPTY_REPLIES_PER_CLOSE = 1_000

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
export class HttpExchange implements Framing, HeldBody, ArrivingBody {
  /** The response that `cork` of uWS is about to write: one function for all of them instead of a closure for each. */
  static #corked: HttpExchange
  static #corkedReply: Reply
  static readonly #writeCorked = () => HttpExchange.#corked.#write(HttpExchange.#corkedReply)

  readonly #context: ExchangeContext
  readonly #route: Route
  readonly #res: HttpResponse
  readonly headOnly: boolean
  readonly #startedAt: number
  origin: string | undefined
  /** How the problems of this request are rendered, unless as those of its route. */
  #render: ((problem: Problem) => Reply) | undefined
  #owner = UNKNOWN_OWNER
  /** Undefined before the owner is known, and after the request is counted. */
  #counter: RequestCounter | undefined
  #outcome: CommitOutcome | undefined
  #arrivedAtMs: number | undefined
  receiptId: Uint8Array | undefined
  #body: RequestBody | undefined
  #requestId: string | undefined
  #bodyArriving = false
  #isPaused = false
  #restIsSkipped = false
  #handler: BodyHandler | undefined
  /** Fault of the body that was found before `accept` decided. It waits, because the credential is checked first. */
  #bodyProblem: Problem | undefined
  #answered = false
  #finished = false
  #sweeps = 0
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
    const { head, arriving } = this.#context
    const { bodyLimitBytes } = this.#route
    head.open(request, this)
    const { contentLength, bodyFollows, fault } = head
    this.#requestId = readRequestId(head)
    if (this.#route.cors) this.origin = readOrigin(head)
    let decision: Decision | Promise<Decision>
    try {
      decision = fault === undefined ? this.#route.accept(head, this) : this.#rendered(fault)
    } catch (error) {
      decision = this.#replyToFault(error)
    } finally {
      head.close()
    }

    this.#res.onAborted(() => this.#abort())
    if (bodyFollows) {
      this.#bodyArriving = true
      this.#restIsSkipped = !fault && contentLength !== undefined && contentLength <= SKIPPED_REST_BYTES
      this.#body = new RequestBody(this.#context, Math.min(contentLength ?? Infinity, bodyLimitBytes), this.#owner)
      arriving.add(this)
      this.#res.onData((chunk, isLast) => this.#receive(chunk, isLast))
      if (contentLength !== undefined && contentLength > bodyLimitBytes) this.#bodyProblem = overLimit(this.#route)
    }
    if (decision instanceof Promise) {
      decision.then(
        decided => this.#decide(decided),
        error => this.#decide(this.#replyToFault(error)),
      )
    } else this.#decide(decision)
  }

  get requestId(): string {
    this.#requestId ??= randomUUID()
    return this.#requestId
  }

  belongsTo(owner: string, counter?: RequestCounter): void {
    this.#owner = owner
    this.#counter = counter
    if (this.#body && !this.#body.assign(owner)) this.#bodyProblem ??= tooMuchHeld
  }

  /** Checks for progress. Called at an interval while the body is arriving. */
  sweep(): void {
    this.#sweeps++
    if (this.#answered) {
      if (this.#sweeps >= this.#context.discardSweeps) this.#hangUp()
    } else if (!this.#isPaused) this.#sweepBody()
  }

  #sweepBody(): void {
    const tooSlow = this.#body?.sweep()
    if (tooSlow) {
      this.#restIsSkipped = false
      this.#refuse(tooSlow)
    } else if (this.#handler && !this.#body?.takePlace()) this.#refuse(tooManyArriving)
    else if (this.#sweeps % SWEEPS_PER_RESTART === 0) {
      // A socket must be paused first, or it receives nothing after it is resumed.
      this.#res.pause()
      this.#res.resume()
    }
  }

  renderWith(render: (problem: Problem) => Reply): void {
    this.#render = render
  }

  release(): void {
    this.#body?.release()
  }

  committed(outcome: CommitOutcome, arrivedAtMs: number, receiptId?: Uint8Array): void {
    this.#outcome = outcome
    this.#arrivedAtMs = arrivedAtMs
    this.receiptId = receiptId
  }

  answer(reply: Reply): void {
    this.#settle(reply)
  }

  refuse(problem: Problem): void {
    this.#settle(this.#rendered(problem))
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
    if (this.#isPaused) this.#res.resume()
    this.#isPaused = false
    if (typeof decision !== 'function') {
      this.#body?.release()
      this.#answer(decision)
    } else if (this.#bodyProblem) this.#refuse(this.#bodyProblem)
    else {
      this.#handler = decision
      if (!this.#bodyArriving) this.#handle(decision)
      else if (this.#body?.size && !this.#body.takePlace()) this.#refuse(tooManyArriving)
    }
  }

  #receive(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#finished) return
    if (isLast) {
      this.#bodyArriving = false
      this.#context.arriving.delete(this)
      this.#body?.leavePlace()
    }
    if (this.#answered) this.#discard(chunk.byteLength, isLast)
    else {
      if (!this.#bodyProblem) this.#keep(chunk, isLast)
      if (isLast && this.#handler && !this.#answered) this.#handle(this.#handler)
    }
  }

  #keep(chunk: ArrayBuffer, isLast: boolean): void {
    const body = this.#body
    if (!body) return
    const problem = this.#problemOfKeeping(body, chunk, isLast)
    if (problem) {
      this.#bodyProblem = problem
      body.release()
      if (this.#handler) this.#refuse(problem)
    } else if (!this.#handler && !isLast && body.size > UNDECIDED_BYTES) {
      this.#isPaused = true
      this.#res.pause()
    }
  }

  #problemOfKeeping(body: RequestBody, chunk: ArrayBuffer, isLast: boolean): Problem | undefined {
    if (body.size + chunk.byteLength > this.#route.bodyLimitBytes) return overLimit(this.#route)
    if (!isLast && this.#handler && !body.takePlace()) return tooManyArriving
    // Most bodies arrive in one piece after accept has decided, and the handler reads them without a copy.
    const isKept = isLast && body.size === 0 && this.#handler ? body.lend(chunk) : body.append(chunk, isLast)
    return isKept ? undefined : tooMuchHeld
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
    this.#body?.release()
    if (this.#finished) {
      // The client has left, but its request may be on disk.
      this.#count(reply.status)
      reply.onEnd?.()
    } else this.#answer(reply)
  }

  #refuse(problem: Problem): void {
    const limit = LIMIT_OF_PROBLEM.get(problem)
    if (limit !== undefined) this.#context.onRefused?.(limit)
    this.#body?.release()
    this.#answer(this.#rendered(problem))
  }

  #answer(reply: Reply): void {
    this.#answered = true
    this.#onEnd = reply.onEnd
    this.#count(reply.status)
    try {
      this.#observe(reply.status)
      if (isStream(reply.body) && !hasNoBody(reply, this)) void this.#stream(reply, reply.body)
      else if (this.#bodyArriving && !this.#restIsSkipped) this.#answerAndDiscard(reply)
      else if (isEmpty(reply, this) && ++this.#context.emptyReplies % EMPTY_REPLIES_PER_CLOSE === 0) {
        this.#res.cork(() => writeWithoutEnding(this.#res, reply, this))
        setImmediate(() => this.#hangUp())
      } else {
        HttpExchange.#corked = this
        HttpExchange.#corkedReply = reply
        this.#res.cork(HttpExchange.#writeCorked)
      }
    } catch (error) {
      logFault(this.#route, error, this.#context.logger, this)
      this.#hangUp()
    }
  }

  #answerAndDiscard(reply: Reply): void {
    this.#sweeps = 0
    this.#res.cork(() => writeWithoutEnding(this.#res, reply, this))
  }

  #write(reply: Reply): void {
    const { body } = reply
    writeHead(this.#res, reply, this, this.#context.stopping)
    if (hasNoBody(reply, this)) endWithoutBody(this.#res, reply)
    else if (!body || isStream(body)) this.#res.end()
    else if (!endAtOnce(this.#res, body)) {
      endGradually(this.#res, body, this.#keepPace(), () => this.#finish())
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
      // A source that watches the connection fails because it is closed.
      if (this.#closed?.signal.aborted) return
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

  #count(status: number): void {
    this.#counter?.ended(this.#owner, this.#outcome ?? status, this.#arrivedAtMs)
    this.#counter = undefined
  }

  #observe(status: number): void {
    const { observe, now } = this.#context
    observe?.(this.#route, status, now() - this.#startedAt)
  }

  #replyToFault(error: unknown): Reply {
    if (error instanceof ProblemError) return this.#rendered(error.problem)
    logFault(this.#route, error, this.#context.logger, this)
    return this.#rendered(INTERNAL_ERROR)
  }

  #rendered(problem: Problem): Reply {
    const route = this.#render === undefined ? this.#route : { ...this.#route, renderProblem: this.#render }
    return renderProblem(route, problem, this.#context.logger, this)
  }
}
