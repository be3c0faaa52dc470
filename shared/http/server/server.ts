import { KIB, MIB } from '../../../schemas/units.ts'
import { FairShares } from '../../concurrency/fair-shares.ts'
import { errorFields } from '../../runtime/errors.ts'
import { withDeadline } from '../../runtime/lifecycle.ts'
import type { Logger } from '../../runtime/logger.ts'
import { problemReply, type RequestHead, type Route } from '../route.ts'
import { BodyMemory } from './body-memory.ts'
import { preflightHeaders } from './cors.ts'
import { HttpExchange } from './exchange.ts'
import type { ExchangeContext } from './exchange-context.ts'
import { renderProblem, type ServerLimit } from './problem.ts'
import { READ_ALLOWANCE_MS } from './read-pace.ts'
import type { BodyContext } from './request-body.ts'
import { RequestHeadView } from './request-head.ts'
import { type HttpRequest, type HttpResponse, type us_listen_socket, uws } from './uws.ts'

/** Options of a server. */
export interface HttpServerOptions {
  readonly routes: readonly Route[]
  readonly logger: Logger
  /** Limit of all bodies being received or handled, together, which their owners share. Data beyond it is refused with 429. */
  readonly heldBodyLimitBytes: number
  /** Limit of the bodies that arrive in more than one piece, which their owners share. */
  readonly arrivingBodiesLimit?: number
  /** Limit of open connections. Further ones are closed as soon as they are accepted. No limit unless given. */
  readonly connectionsLimit?: number
  /** Called once per routed request. The status is 499 if the client left before the response. */
  readonly observe?: (route: Route, status: number, durationMs: number) => void
  /** Called for each request or connection that is refused for a limit of the server. */
  readonly onRefused?: (limit: ServerLimit) => void
  readonly now?: () => number
  /** How long a body may bring no data before it is refused with 408. */
  readonly bodyIdleTimeoutMs?: number
  /** How long a body may be incomplete, plus one second for every 16 KiB of it that have arrived. Later it is refused with 408. */
  readonly bodyGraceMs?: number
  /** How long a client may continue to send a body that was refused early, before its connection is closed. */
  readonly discardTimeoutMs?: number
  /** How many bytes a client may continue to send then. */
  readonly discardLimitBytes?: number
  /** How long a client may lag behind the speed at which it must read a response. */
  readonly readAllowanceMs?: number
}

/** A server. */
export interface HttpServer {
  /** Resolves with the port; rejects if the server cannot listen there. Port 0 takes any free port. */
  listen(host: string, port: number): Promise<number>
  /** Asks each client that gets a response from now on to close its connection. */
  askToLeave(): void
  /** Stops listening at once, waits for the requests in flight until the deadline, then closes every connection. */
  close(deadlineMs: number): Promise<void>
  readonly heldBodyBytes: number
  /** The memory of its bodies, for another server of the process. */
  readonly bodies: BodyContext
  /** Number of open connections. */
  readonly connections: number
}

/**
 * Creates an HTTP/1.1 server on uWebSockets.js, for routes that decide on the head, take a bounded body and reply.
 *
 * Pipelined requests are served in order while responses need no I/O. Where one does, uWS closes the connection when it
 * sees the second request, before any of our code runs (measured on 20.51, in one packet and in two). None of these
 * requests is acknowledged, although the first may be stored (docs/api/requests.md#http). uWS closes idle connections
 * after 8 to 12 s, which no option changes (docs/api/requests.md#idle-connections).
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  return new UwsServer(options)
}

/** One owner alone gets two thirds of the memory for bodies: by default 64 MiB, as much as the largest body. */
const HELD_BODY_WEIGHT = 2
/** One owner alone gets half of them. A body of less than 1 KiB so far takes 1 KiB. */
const ARRIVING_BODIES_LIMIT = 8_192
const LEAST_BYTES_PER_SECOND = 16 * KIB
/** More than deploy/proxy/nginx passes on: a proxy that still writes when its connection is closed does not read the response. */
const DISCARD_LIMIT_BYTES = 80 * MIB

class UwsServer implements HttpServer {
  readonly #app = uws.App()
  readonly #context: ExchangeContext
  readonly #logger: Logger
  readonly #sweeper: NodeJS.Timeout
  #connections = 0
  #listening: us_listen_socket | undefined

  constructor(options: HttpServerOptions) {
    const { bodyIdleTimeoutMs = 30_000, bodyGraceMs = 30_000, discardTimeoutMs = 5_000 } = options
    const sweepIntervalMs = Math.min(1_000, bodyIdleTimeoutMs / 10, bodyGraceMs / 10, discardTimeoutMs / 5)
    const held = new FairShares(options.heldBodyLimitBytes, HELD_BODY_WEIGHT)
    const context: ExchangeContext = {
      logger: options.logger,
      head: new RequestHeadView(),
      held,
      places: new FairShares(options.arrivingBodiesLimit ?? ARRIVING_BODIES_LIMIT),
      memory: new BodyMemory(held, options.heldBodyLimitBytes),
      arriving: new Set(),
      pace: {
        idleSweeps: bodyIdleTimeoutMs / sweepIntervalMs,
        graceSweeps: bodyGraceMs / sweepIntervalMs,
        bytesPerSweep: (LEAST_BYTES_PER_SECOND * sweepIntervalMs) / 1_000,
      },
      discardSweeps: discardTimeoutMs / sweepIntervalMs,
      discardLimitBytes: options.discardLimitBytes ?? DISCARD_LIMIT_BYTES,
      readAllowanceMs: options.readAllowanceMs ?? READ_ALLOWANCE_MS,
      observe: options.observe,
      onRefused: options.onRefused,
      now: options.now ?? (() => performance.now()),
      stopping: false,
      inFlight: 0,
      emptyReplies: 0,
      onIdle: undefined,
    }
    this.#context = context
    this.#logger = options.logger
    this.#followConnections(options)
    for (const routes of groupByPath(options.routes)) this.#mount(routes)
    const unknownPath = unknownPathRoute(options.routes, 'no route matches this path')
    this.#app.any('/*', (res, request) => new HttpExchange(context, unknownPath, res, isHead(request)).start(request))
    if (!options.routes.some(route => route.path === '/')) {
      const noPath = unknownPathRoute(options.routes, NO_PATH)
      this.#app.any('/', (res, request) => new HttpExchange(context, noPath, res, isHead(request)).start(request))
    }
    this.#sweeper = setInterval(() => {
      for (const exchange of context.arriving) exchange.sweep()
    }, sweepIntervalMs).unref()
  }

  get bodies(): BodyContext {
    return this.#context
  }

  get heldBodyBytes(): number {
    return this.#context.held.used
  }

  get connections(): number {
    return this.#connections
  }

  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#app.listen(host, port, socket => {
        if (!socket) return reject(new Error(`cannot listen on ${host}:${port}: the port is in use or not permitted`))
        this.#listening = socket
        resolve(uws.us_socket_local_port(socket))
      })
    })
  }

  askToLeave(): void {
    this.#context.stopping = true
  }

  async close(deadlineMs: number): Promise<void> {
    this.#context.stopping = true
    if (this.#listening) uws.us_listen_socket_close(this.#listening)
    this.#listening = undefined
    await this.#untilIdle(deadlineMs)
    // The last response may still be corked in the call that brought its request.
    await new Promise(resolve => setImmediate(resolve))
    clearInterval(this.#sweeper)
    this.#app.close()
  }

  /** Counts connections as they open and close, and closes new ones beyond the limit. */
  #followConnections({ connectionsLimit: limit = Number.POSITIVE_INFINITY }: HttpServerOptions): void {
    const follow = (res: HttpResponse, change: number): void => {
      this.#connections += change
      if (change <= 0 || this.#connections <= limit) return
      this.#context.onRefused?.('connections')
      res.close()
    }
    this.#app.filter((res, change) => follow(res, Number(change)))
  }

  /** Mounts the routes of one path: their own methods, HEAD where there is a GET, OPTIONS, and 405 for all others. */
  #mount(routes: [Route, ...Route[]]): void {
    const context = this.#context
    for (const route of routes) {
      this.#app[mountMethod[route.method]](route.path, (res, request) =>
        new HttpExchange(context, route, res, false).start(request),
      )
    }
    const get = routes.find(route => route.method === 'GET')
    const otherwise = otherMethods(routes, this.#logger)
    const answerOther = (res: HttpResponse, request: HttpRequest) => {
      const head = isHead(request)
      new HttpExchange(context, head && get ? get : otherwise, res, head).start(request)
    }
    this.#app.any(routes[0].path, answerOther)
    // uWS prefers a path with parameters and this method to a plain path for any: GET /things/purge would read the thing "purge".
    for (const [method, mount] of Object.entries(mountMethod)) {
      if (!routes.some(route => route.method === method)) this.#app[mount](routes[0].path, answerOther)
    }
  }

  async #untilIdle(deadlineMs: number): Promise<void> {
    const context = this.#context
    if (context.inFlight === 0) return
    const idle = new Promise<void>(resolve => {
      context.onIdle = resolve
    })
    await withDeadline(idle, deadlineMs, 'requests were still in flight').catch(error => {
      this.#logger.warn({ inFlight: context.inFlight, ...errorFields(error) }, 'closing with requests in flight')
    })
  }
}

const mountMethod = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'del' } as const

const isHead = (request: HttpRequest) => request.getCaseSensitiveMethod() === 'HEAD'

/**
 * Returns the route of every other path. Where a path has CORS, a page reads the refusal of a wrong path too, so its
 * preflight is answered as if the path were known.
 */
function unknownPathRoute(routes: readonly Route[], message: string): Route {
  const cors = routes.some(route => route.cors)
  const notFound = problemReply({ code: 'NOT_FOUND', message })
  const isPreflight = (head: RequestHead) =>
    cors && head.method === 'OPTIONS' && head.header('access-control-request-method') !== undefined
  const accept = (head: RequestHead) =>
    isPreflight(head) ? { status: 204, headers: preflightHeaders(head, METHODS) } : notFound
  return { method: 'GET', path: '/*', cors, bodyLimitBytes: 0, accept }
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']

/** For the first address that a person types. */
const NO_PATH =
  'the address needs a path: GET /openapi.json lists them, and the console, if there is one, is at /console/ of the API'

/**
 * Groups routes by path. Patterns that differ only in the names of their parameters are one path, because uWS would
 * call only the first of them for other methods.
 */
function groupByPath(routes: readonly Route[]): [Route, ...Route[]][] {
  const groups = new Map<string, [Route, ...Route[]]>()
  for (const route of routes) {
    const shape = route.path.replaceAll(/:[^/]+/g, ':')
    const group = groups.get(shape)
    if (group) group.push(route)
    else groups.set(shape, [route])
  }
  return [...groups.values()]
}

/** Returns the route of all methods of a path that have none: it replies to OPTIONS and refuses the others with 405. */
function otherMethods(routes: [Route, ...Route[]], logger: Logger): Route {
  const methods = routes.flatMap(route => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]))
  const allow = ['allow', [...methods, 'OPTIONS'].join(', ')] as const
  const cors = routes.some(route => route.cors)
  const message = `method not allowed: use ${methods.join(', ')}`
  const refusal = renderProblem(routes[0], { code: 'METHOD_NOT_ALLOWED', message }, logger)
  const notAllowed = { ...refusal, headers: [...(refusal.headers ?? []), allow] }
  const options = (head: RequestHead) => ({
    status: 204,
    headers: [allow, ...(cors ? preflightHeaders(head, methods) : [])],
  })
  return {
    ...routes[0],
    cors,
    bodyLimitBytes: 0,
    accept: head => (head.method === 'OPTIONS' ? options(head) : notAllowed),
  }
}
