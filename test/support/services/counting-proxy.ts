import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream'

export interface CountingProxy {
  /** The same address as the target's, with the proxy's host and port. */
  readonly url: string
  readonly openConnections: number
  /** Of answers, as far as the client's side has taken them. */
  readonly bytesAnswered: number
  close(): Promise<void>
}

/** Stands in front of a server on this machine and counts; it holds back the server when the client does not read. */
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
    // The end of either side, whatever its reason, is the end of the other.
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
