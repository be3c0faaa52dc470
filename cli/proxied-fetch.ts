import { type Dispatcher, EnvHttpProxyAgent, fetch, Pool } from 'undici'
import { ProxyRefusal } from '../packages/build/src/upload/http-client.ts'

/**
 * Sends a request through the proxy that `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` name, in either case. They are read when the
 * process starts. Agent and fetch must be of one version of undici, so this is not the fetch of Node.
 */
export const proxiedFetch = ((url: string, init: object) => {
  agent ??= new EnvHttpProxyAgent({ clientFactory: (origin, options) => new ProxyPool(origin, options) })
  return fetch(url, { ...init, dispatcher: agent })
  // The types of Node are those of another version.
}) as unknown as typeof globalThis.fetch

let agent: EnvHttpProxyAgent | undefined

/**
 * The connections to a proxy. When it closes one or refuses, undici would connect again without end, as if a connection to the
 * server had been lost: 65,928 times in 70 s.
 */
class ProxyPool extends Pool {
  override async connect(options: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData<never>> {
    const connected = await super.connect(options).catch((error: Error & { code?: string }) => {
      throw error.code === 'UND_ERR_SOCKET'
        ? new ProxyRefusal('the proxy closed the connection', { cause: error })
        : error
    })
    if (connected.statusCode === 200) return connected as Dispatcher.ConnectData<never>
    connected.socket.on('error', () => {}).destroy()
    throw new ProxyRefusal(`the proxy answered ${connected.statusCode}`)
  }
}
