import { afterEach } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import type { Reply, Route } from '../../../shared/http/route.ts'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../../../shared/http/server/server.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'

/** Returns a server for the tests of a file, closed after each of them. Call it at the top of the file. */
export function useHttpServer() {
  const statuses: number[] = []
  const logged: unknown[][] = []
  const logger = { error: (...entry: unknown[]) => logged.push(entry), warn: () => {} } as unknown as Logger
  const observe = (_: Route, status: number) => statuses.push(status)
  const servers: HttpServer[] = []
  afterEach(async () => {
    await Promise.all(servers.splice(0).map(server => server.close(0)))
    statuses.length = 0
    logged.length = 0
  })

  function start(routes: Route[], options: Partial<HttpServerOptions> = {}): HttpServer {
    const server = createHttpServer({ routes, logger, heldBodyLimitBytes: 64 * MIB, observe, ...options })
    servers.push(server)
    return server
  }
  return {
    /** Statuses of the requests of the current test. */
    statuses,
    /** Errors that the current test has logged. */
    logged,
    start,
    /** Starts a server on a free port and returns the port. */
    serve: (routes: Route[], options?: Partial<HttpServerOptions>) => start(routes, options).listen('127.0.0.1', 0),
    /** Bytes of bodies that the first server of the current test holds. */
    heldBodyBytes: () => servers[0]?.heldBodyBytes ?? 0,
    /** Returns the first server and leaves it to the test to close it. */
    take: () => servers.shift(),
  }
}

/** Returns a reply of plain text. */
export const text = (body: string): Reply => ({ status: 200, headers: [['content-type', 'text/plain']], body })

/** Returns a GET route. */
export const getRoute = (path: string, accept: Route['accept'], more: Partial<Route> = {}): Route => ({
  method: 'GET',
  path,
  bodyLimitBytes: 0,
  accept,
  ...more,
})

/** Returns a POST route. */
export const postRoute = (path: string, accept: Route['accept'], more: Partial<Route> = {}): Route => ({
  method: 'POST',
  path,
  bodyLimitBytes: 1_000,
  accept,
  ...more,
})
