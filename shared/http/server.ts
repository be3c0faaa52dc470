import { BufferPool } from '../memory/buffer-pool.ts'
import { withDeadline } from '../runtime/lifecycle.ts'
import type { Logger } from '../runtime/logger.ts'
import { preflightHeaders } from './cors.ts'
import { type ExchangeContext, HttpExchange } from './exchange.ts'
import { renderProblem } from './problem.ts'
import { HeldBytes } from './request-body.ts'
import { RequestHeadView } from './request-head.ts'
import { problemReply, type RequestHead, type Route } from './route.ts'
import { type us_listen_socket, uws } from './uws.ts'

export type { BodyHandler, Decision, Header, Reply, RequestHead, Route } from './route.ts'

export interface HttpServerOptions {
  readonly routes: readonly Route[]
  readonly logger: Logger
  /** Bodies being received and those whose handler has not settled, together. New data beyond it is answered 429. */
  readonly heldBodyLimitBytes: number
  /** Called once per request that was routed; status 499 when the client left before its answer. */
  readonly observe?: (route: Route, status: number, durationMs: number) => void
  readonly now?: () => number
  /** A body that stops coming is answered 408 after this. */
  readonly bodyIdleTimeoutMs?: number
  /** An answer that comes before its request's body is whole lets the client go on sending for so long, and so much. */
  readonly discardTimeoutMs?: number
  readonly discardLimitBytes?: number
}

export interface HttpServer {
  /** Resolves with the port, rejects when it cannot be had. Port 0 takes any. */
  listen(host: string, port: number): Promise<number>
  /** Stops listening at once, waits for the requests in flight until the deadline, then closes every connection. */
  close(deadlineMs: number): Promise<void>
  readonly heldBodyBytes: number
}

/**
 * HTTP/1.1 on uWebSockets.js, for routes that decide on the head, take a bounded body and answer.
 *
 * A client that sends its second request before the first is answered (pipelining) is served in order as long as answers
 * need no I/O. Where one does, uWS closes the connection when it sees the second request, before any code of ours runs
 * (measured on 20.51, in one packet and in two): none of them is acknowledged, and RFC 9112 section 9.3.2 has the client
 * send them again.
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { bodyIdleTimeoutMs = 30_000, discardTimeoutMs = 5_000, discardLimitBytes = 32 * 1024 * 1024 } = options
  const sweepIntervalMs = Math.min(1_000, bodyIdleTimeoutMs / 10, discardTimeoutMs / 5)
  const context: ExchangeContext = {
    logger: options.logger,
    head: new RequestHeadView(),
    held: new HeldBytes(options.heldBodyLimitBytes),
    memory: new BufferPool(IDLE_BODY_BYTES),
    arriving: new Set(),
    idleSweeps: bodyIdleTimeoutMs / sweepIntervalMs,
    discardSweeps: discardTimeoutMs / sweepIntervalMs,
    discardLimitBytes,
    observe: options.observe,
    now: options.now ?? (() => performance.now()),
    stopping: false,
    inFlight: 0,
    onIdle: undefined,
  }
  const app = uws.App()
  for (const routes of groupByPath(options.routes)) mount(routes)
  const unknownPath: Route = { method: 'GET', path: '/*', bodyLimitBytes: 0, accept: () => notFound }
  app.any('/*', (res, request) => new HttpExchange(context, unknownPath, res, isHead(request)).start(request))

  /** The routes of one path: their own methods, HEAD where there is a GET, OPTIONS, and 405 for the rest. */
  function mount(routes: [Route, ...Route[]]): void {
    for (const route of routes) {
      app[mountMethod[route.method]](route.path, (res, request) =>
        new HttpExchange(context, route, res, false).start(request),
      )
    }
    const get = routes.find(route => route.method === 'GET')
    const otherwise = otherMethods(routes, options.logger)
    app.any(routes[0].path, (res, request) => {
      const head = isHead(request)
      new HttpExchange(context, head && get ? get : otherwise, res, head).start(request)
    })
  }

  let listening: us_listen_socket | undefined
  const sweeper = setInterval(() => {
    for (const exchange of context.arriving) exchange.sweep()
  }, sweepIntervalMs).unref()

  function listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      app.listen(host, port, socket => {
        if (!socket) return reject(new Error(`cannot listen on ${host}:${port}: the port is taken or not ours to take`))
        listening = socket
        resolve(uws.us_socket_local_port(socket))
      })
    })
  }

  async function close(deadlineMs: number): Promise<void> {
    context.stopping = true
    if (listening) uws.us_listen_socket_close(listening)
    listening = undefined
    if (context.inFlight > 0) {
      const idle = new Promise<void>(resolve => {
        context.onIdle = resolve
      })
      await withDeadline(idle, deadlineMs, 'requests were still in flight').catch(error => {
        options.logger.warn({ inFlight: context.inFlight, error: error.message }, 'closing with requests in flight')
      })
    }
    // The last answer may still be corked in the call that brought its request.
    await new Promise(resolve => setImmediate(resolve))
    clearInterval(sweeper)
    app.close()
  }

  return {
    listen,
    close,
    get heldBodyBytes() {
      return context.held.used
    },
  }
}

/** Memory for bodies that is kept while there are none. */
const IDLE_BODY_BYTES = 32 * 1024 * 1024

const mountMethod = { GET: 'get', POST: 'post', PUT: 'put', DELETE: 'del' } as const

const isHead = (request: { getCaseSensitiveMethod(): string }) => request.getCaseSensitiveMethod() === 'HEAD'

const notFound = problemReply({ code: 'NOT_FOUND', message: 'there is nothing at this path' })

/** Patterns that differ only in the names of their parameters are one path: uWS would ask only the first for other methods. */
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

/** Stands for every method of a path that has no route: OPTIONS is answered, the rest is not allowed. */
function otherMethods(routes: [Route, ...Route[]], logger: Logger): Route {
  const methods = routes.flatMap(route => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]))
  const allow = ['allow', [...methods, 'OPTIONS'].join(', ')] as const
  const cors = routes.some(route => route.cors)
  const refusal = renderProblem(
    routes[0],
    { code: 'METHOD_NOT_ALLOWED', message: `this path takes ${methods.join(', ')}` },
    logger,
  )
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
