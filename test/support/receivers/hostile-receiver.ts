import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

/** A receiver on the loopback address that does what a test writes, without a library of HTTP in between. */
export interface HostileReceiver {
  readonly port: number
  /** Requests so far, head and body. */
  readonly requests: readonly string[]
  /** Connections that are open. */
  readonly open: ReadonlySet<Socket>
  stop(): Promise<void>
}

/** Starts a receiver that calls back with each request, as text, once its body has arrived. `tls` is a certificate as PEM. */
export async function startHostileReceiver(
  answer: (socket: Socket, request: string) => void,
  { host = '127.0.0.1', tls }: { host?: string; tls?: { readonly cert: string; readonly key: string } } = {},
): Promise<HostileReceiver> {
  const requests: string[] = []
  const open = new Set<Socket>()
  const onConnection = (socket: Socket) => {
    let received = ''
    open.add(socket)
    // A client that closes early resets the connection.
    socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket))
    socket.on('data', bytes => {
      received += bytes.toString('utf8')
      if (!isComplete(received)) return
      requests.push(received)
      answer(socket, received)
    })
  }
  const server: Server = tls ? createTlsServer(tls, onConnection) : createServer(onConnection)
  await once(server.listen(0, host), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    ...{ port, requests, open },
    async stop() {
      server.close()
      for (const socket of open) socket.destroy()
      if (server.listening) await once(server, 'close')
    },
  }
}

function isComplete(request: string): boolean {
  const [head = '', body] = request.split(/\r\n\r\n(.*)/s)
  const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0)
  return body !== undefined && Buffer.byteLength(body) >= length
}
