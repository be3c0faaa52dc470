import { createServer } from 'node:net'
import { ConfigError } from '../config.ts'

/** A server that is about to listen. */
interface Listener {
  /** Resolves with the port. */
  listen(host: string, port: number): Promise<number>
}

/** Where a server listens, and the settings that change it. */
interface ListenAddress {
  readonly host: string
  readonly port: number
  readonly hostSetting: 'BIND_HOST' | 'ADMIN_BIND_HOST'
  readonly portSetting: string
}

/** Listens, and resolves with the port. Throws a ConfigError that names the setting to change if that is not possible. */
export async function listenAt(server: Listener, address: ListenAddress): Promise<number> {
  try {
    return await server.listen(address.host, address.port)
  } catch (error) {
    throw new ConfigError(faultOf((await codeOf(address)) ?? codeIn(error), address), { cause: error })
  }
}

function faultOf(code: string | undefined, { host, port, hostSetting, portSetting }: ListenAddress): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is in use: stop the process that uses it, or set ${portSetting} to another port`
    case 'EACCES':
      return `port ${port} is not permitted to this process: set ${portSetting} to a port above 1023`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `this machine has no address ${host}: set ${hostSetting} to one of its own`
    default:
      return `cannot listen on ${host}, port ${port} (${code ?? 'no cause is known'}): check ${hostSetting} and ${portSetting}`
  }
}

const codeIn = (error: unknown) =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/** Returns why nothing can listen at an address. uWebSockets.js does not say. */
function codeOf({ host, port }: ListenAddress): Promise<string | undefined> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', error => resolve(codeIn(error)))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}
