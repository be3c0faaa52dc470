import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'
import { until } from '../until.ts'

/** A load balancer before edges, which come and go while clients stay connected to it. */
export interface Balancer {
  readonly url: string
  /** Sends further requests to this port as well. */
  add(port: number): void
  /** Sends no further request to this port, and resolves when the last one is answered. */
  drain(port: number): Promise<void>
  close(): Promise<void>
}

const DRAIN_DEADLINE_MS = 30_000

/** Starts a balancer that sends each request to the next edge in turn, on a connection of its own. */
export async function startBalancer(): Promise<Balancer> {
  const ports: number[] = []
  const inFlight = new Map<number, number>()
  let turn = 0

  const server = createServer((client, answer) => {
    const port = ports[turn++ % ports.length]
    if (port === undefined) {
      answer.writeHead(502).end()
      return
    }
    inFlight.set(port, (inFlight.get(port) ?? 0) + 1)
    void forward(client, answer, port).finally(() => inFlight.set(port, (inFlight.get(port) ?? 0) - 1))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add: port => void ports.push(port),
    async drain(port) {
      ports.splice(ports.indexOf(port), 1)
      await until('the last request of an edge is answered', () => (inFlight.get(port) ?? 0) === 0, {
        deadlineMs: DRAIN_DEADLINE_MS,
      })
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Forwards a request, and resolves when it is answered. An edge that cannot be reached is answered with 502. */
function forward(client: IncomingMessage, answer: ServerResponse, port: number): Promise<void> {
  return new Promise(resolve => {
    const { method, url, headers } = client
    const upstream = request({ host: '127.0.0.1', port, method, path: url, headers, agent: false }, response => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      pipeline(response, answer, () => resolve())
    })
    upstream.once('error', () => {
      if (!answer.headersSent) answer.writeHead(502)
      answer.end()
      resolve()
    })
    client.pipe(upstream)
  })
}
