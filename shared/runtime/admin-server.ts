import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describeError } from './errors.ts'
import { withDeadline } from './lifecycle.ts'
import type { Logger } from './logger.ts'
import type { Registry } from './metrics.ts'

/** `true` is well; `false` or a text that says what is wrong is not. */
export type Health = boolean | string

export interface AdminServerDeps {
  readonly registry: Registry
  /** Comes from progress (jobs done, event loop), not from an open port. An unwell process is to be restarted. */
  readonly isLive: () => Health | Promise<Health>
  /** False while starting, draining, or cut off from a dependency: traffic should go elsewhere. */
  readonly isReady: () => Health | Promise<Health>
  readonly logger: Logger
}

export interface AdminServer {
  /** Resolves with the port (0 asks the system for a free one). */
  listen(host: string, port: number): Promise<number>
  close(): Promise<void>
}

/** A probe gives up after a second, so a check that hangs must answer "unwell" before that. */
const CHECK_DEADLINE_MS = 900

/** `/livez`, `/readyz` and `/metrics` of one process, on a port of its own. */
export function createAdminServer({ registry, isLive, isReady, logger }: AdminServerDeps): AdminServer {
  async function answerHealth(response: ServerResponse, check: () => Health | Promise<Health>): Promise<void> {
    let health: Health
    try {
      health = await withDeadline(Promise.resolve(check()), CHECK_DEADLINE_MS, 'the check took too long')
    } catch (error) {
      health = describeError(error)
    }
    if (health === true) return send(response, 200, 'text/plain; charset=utf-8', 'ok\n')
    send(response, 503, 'text/plain; charset=utf-8', `${health === false ? 'not ok' : health}\n`)
  }

  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0]
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return send(response, 405, 'text/plain; charset=utf-8', 'GET only\n')
    }
    if (path === '/livez') return void answerHealth(response, isLive)
    if (path === '/readyz') return void answerHealth(response, isReady)
    if (path !== '/metrics') return send(response, 404, 'text/plain; charset=utf-8', '/livez, /readyz, /metrics\n')
    registry.metrics().then(
      text => send(response, 200, registry.contentType, text),
      error => {
        logger.error({ error: describeError(error) }, 'the metrics could not be collected')
        send(response, 500, 'text/plain; charset=utf-8', 'the metrics could not be collected\n')
      },
    )
  })

  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          resolve((server.address() as AddressInfo).port)
        })
      }),
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
