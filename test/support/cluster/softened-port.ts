import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A port that leads to another one. */
export interface SoftenedPort {
  readonly port: number
  close(): Promise<void>
}

/**
 * Opens a port that leads to another port of this machine. A connection that its client resets ends there as if it had been closed.
 * libchdb aborts when a connection of the native protocol is reset: it is clickhouse-local, which ends with any error that leaves a
 * connection (`KillingErrorHandler`), while a ClickHouse server logs it. A shard resets its connection to another one when it
 * gives up a read of both, as when the client of the read was killed, and has not received all of the result.
 */
export async function openSoftenedPort(target: number): Promise<SoftenedPort> {
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, client => {
    const upstream = connect({ host: '127.0.0.1', port: target, allowHalfOpen: true, noDelay: true })
    for (const socket of [client, upstream]) {
      open.add(socket)
      // Each error is followed by `close`.
      socket.on('error', () => {}).once('close', () => open.delete(socket))
    }
    client.pipe(upstream).pipe(client)
    // The rest of the response is read, because the server would notice a failed write too.
    client.once('close', () => upstream.end().resume())
    upstream.once('close', () => client.destroySoon())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close()
      for (const socket of open) socket.destroy()
      await once(server, 'close')
    },
  }
}
