import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'

/** A proxy before a server, which holds some requests. */
interface HoldingProxy {
  /** Address of the server through the proxy. */
  readonly url: string
  /** Resolves when a request is held. */
  readonly held: Promise<void>
  /** Lets the held requests and all later ones pass. */
  release(): void
  close(): void
}

/** Starts a proxy that holds requests with such a head until it is released. */
export async function startHoldingProxy(target: string, head: RegExp): Promise<HoldingProxy> {
  const { hostname, port } = new URL(target)
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const server = createServer(client => {
    const upstream = connect({ host: hostname, port: Number(port) })
    let sending = Promise.resolve()
    client.on('data', (bytes: Buffer) => {
      const isHeld = head.test(bytes.toString('latin1'))
      if (isHeld) held.resolve()
      sending = sending.then(() => (isHeld ? released.promise : undefined)).then(() => void upstream.write(bytes))
    })
    upstream.pipe(client)
    for (const socket of [client, upstream]) {
      socket.on('error', () => {})
      socket.on('close', () => [client, upstream].map(one => one.destroy()))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href.replace(/\/$/, ''),
    held: held.promise,
    release: () => released.resolve(),
    close() {
      released.resolve()
      server.close()
    },
  }
}
