import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream'

/** Proxy that counts connections and bytes. */
export interface CountingProxy {
  /** URL of the target with the host and port of the proxy. */
  readonly url: string
  readonly openConnections: number
  /** Bytes of responses that the clients have accepted. */
  readonly bytesAnswered: number
  close(): Promise<void>
}

/**
 * Starts a proxy before a server of this machine that counts connections and bytes, and slows the server down when a client
 * does not read.
 */
export async function startCountingProxy(target: string): Promise<CountingProxy> {
  const { hostname, port } = new URL(target)
  const clients = new Set<Socket>()
  let closedBytes = 0
  const server = createServer(client => {
    clients.add(client)
    const upstream = connect({ host: hostname, port: Number(port) })
    client.once('close', () => {
      clients.delete(client)
      closedBytes += client.bytesWritten
    })
    // When either side ends, for any reason, the other side is ended.
    pipeline(client, upstream, client, () => {
      client.destroy()
      upstream.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    get openConnections() {
      return clients.size
    },
    get bytesAnswered() {
      return [...clients].reduce((sum, client) => sum + client.bytesWritten, closedBytes)
    },
    async close() {
      for (const client of clients) client.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
