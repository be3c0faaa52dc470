import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { Gauge } from 'prom-client'
import { BUILD } from './build-info.ts'
import { describeError, errorFields } from './errors.ts'
import { withDeadline } from './lifecycle.ts'
import type { Logger } from './logger.ts'
import type { Registry } from './metrics.ts'
import type { Health } from './process/health.ts'
import { logReadiness } from './process/readiness-log.ts'

/** Returns whether a result means healthy. */
function isHealthy(health: Health): boolean {
  return health === true || typeof health === 'object'
}

type Check = () => Health | Promise<Health>

/** Dependencies of an admin server. */
interface AdminServerDeps {
  readonly registry: Registry
  /** Reports progress (finished jobs, event loop), not an open port. An unhealthy process must be restarted. */
  readonly isLive: Check
  /** Returns false while the process is starting, draining or cut off from a dependency, so that traffic goes elsewhere. */
  readonly isReady: Check
  /** Returns the document of `/queues`. Without it there is no such path. */
  readonly readQueues?: () => Promise<object>
  readonly logger: Logger
}

/** The HTTP server of health and metrics. */
export interface AdminServer {
  /** Resolves with the port. Port 0 selects a free one. */
  listen(host: string, port: number): Promise<number>
  close(): Promise<void>
}

/** A probe times out after a second, so a check that hangs must be reported as unhealthy before that. */
const CHECK_DEADLINE_MS = 900

/** Second line of `/readyz`. The first one is `ok` or the reason. */
const BUILD_LINE = `version ${BUILD.version}, commit ${BUILD.commit}\n`

/** Serves `/livez`, `/readyz`, `/metrics` and `/queues` of one process on a separate port, and logs why it is not ready. */
export function createAdminServer({ registry, isLive, isReady, readQueues, logger }: AdminServerDeps): AdminServer {
  async function healthOf(check: Check): Promise<Health> {
    try {
      return await withDeadline(Promise.resolve(check()), CHECK_DEADLINE_MS, 'the check timed out')
    } catch (error) {
      return describeError(error)
    }
  }

  async function answerHealth(response: ServerResponse, check: Check, rest = ''): Promise<void> {
    const health = await healthOf(check)
    if (typeof health === 'object')
      return send(response, 200, 'text/plain; charset=utf-8', `ok\n${rest}${health.note}\n`)
    if (health === true) return send(response, 200, 'text/plain; charset=utf-8', `ok\n${rest}`)
    send(response, 503, 'text/plain; charset=utf-8', `${health === false ? 'not ok' : health}\n${rest}`)
  }

  async function answerQueues(response: ServerResponse, read: () => Promise<object>): Promise<void> {
    try {
      const queues = await withDeadline(read(), CHECK_DEADLINE_MS, 'redis does not answer')
      send(response, 200, 'application/json', JSON.stringify(queues))
    } catch (error) {
      send(response, 503, 'text/plain; charset=utf-8', `${describeError(error)}\n`)
    }
  }

  new Gauge({
    name: 'penstock_ready',
    help: '1 if /readyz returns 200.',
    registers: [registry],
    async collect() {
      this.set(isHealthy(await healthOf(isReady)) ? 1 : 0)
    },
  })

  const server = createServer((request, response) => {
    if (isMisdirected(request)) return send(response, 421, 'text/plain; charset=utf-8', MISDIRECTED)
    const path = request.url?.split('?', 1)[0]
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return send(response, 405, 'text/plain; charset=utf-8', 'only GET and HEAD are allowed\n')
    }
    if (path === '/livez') return void answerHealth(response, isLive)
    if (path === '/readyz') return void answerHealth(response, isReady, BUILD_LINE)
    if (path === '/queues' && readQueues) return void answerQueues(response, readQueues)
    if (path !== '/metrics') {
      const paths = ['/livez', '/readyz', '/metrics', ...(readQueues ? ['/queues'] : [])]
      return send(response, 404, 'text/plain; charset=utf-8', `${paths.join(', ')}\n`)
    }
    registry.metrics().then(
      text => send(response, 200, registry.contentType, text),
      error => {
        logger.error(errorFields(error), 'the metrics could not be collected')
        send(response, 500, 'text/plain; charset=utf-8', 'the metrics could not be collected\n')
      },
    )
  })

  return opened(server, () => logReadiness(() => healthOf(isReady), logger))
}

const MISDIRECTED = 'use an IP address or localhost: this port has no other name here\n'
const LOOPBACK = /^(::ffff:)?127\.|^::1$/
/** An IPv6 address is in brackets. */
const HOST_NAME = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/

/**
 * Returns whether a request to a loopback address names another host. A page of a stranger can let its own name lead to this
 * machine, and would read what the port answers.
 */
function isMisdirected({ socket, headers }: IncomingMessage): boolean {
  if (!LOOPBACK.test(socket.localAddress ?? '')) return false
  const [, address, name = ''] = HOST_NAME.exec(headers.host ?? '') ?? []
  return address === undefined ? isIP(name) === 0 && name.toLowerCase() !== 'localhost' : isIP(address) === 0
}

function opened(server: Server, follow: () => () => void): AdminServer {
  let unfollow = () => {}
  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          unfollow = follow()
          resolve((server.address() as AddressInfo).port)
        })
      }),
    close: () =>
      new Promise(resolve => {
        unfollow()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
