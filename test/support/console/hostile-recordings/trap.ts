import type { AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:net'

/** A listener in the place of the server of an attacker. Each connection is an escape, with or without a request. */
export interface Trap {
  /** Returns an address of it that names who uses it. Names below `localhost` are not looked up outside the browser. */
  urlOf(name: string, scheme?: string): string
  /** The first lines of what was sent, one for each connection. */
  readonly caught: string[]
  close(): Promise<void>
}

/** Host of all addresses of a trap. */
export const TRAP_HOST = 'trap.localhost'

/** Starts a trap. */
export async function startTrap(): Promise<Trap> {
  const caught: string[] = []
  const server: Server = createServer(socket => {
    const index = caught.push('a connection') - 1
    socket.on('error', () => socket.destroy())
    socket.once('data', data => {
      caught[index] = data.toString('latin1', 0, 200).split('\r\n').slice(0, 2).join(' ')
      socket.end('HTTP/1.1 204 No Content\r\naccess-control-allow-origin: *\r\nconnection: close\r\n\r\n')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    caught,
    urlOf: (name, scheme = 'http') => `${scheme}://${name}.${TRAP_HOST}:${port}/${name}`,
    close: () => new Promise(resolve => server.close(() => resolve())),
  }
}
