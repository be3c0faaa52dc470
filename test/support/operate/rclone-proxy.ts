import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { S3Access } from '../services/services.ts'

/** A proxy before an S3 server of the tests. */
export interface RcloneProxy {
  /** The endpoint for rclone. */
  readonly endpoint: string
  close(): Promise<void>
}

const EXPIRES_IN_S = 60

/**
 * Starts a proxy that signs downloads again. rclone signs their `Accept-Encoding`, and the simulated R2 of the tests sees another
 * value of that header, so it refuses the signature. A real provider needs no proxy. Everything else passes unchanged.
 */
export async function startRcloneProxy(access: S3Access): Promise<RcloneProxy> {
  const objects = createObjectStore({ ...access, requestTimeoutMs: 10_000 })
  const { pathname, port } = new URL(access.endpoint)
  const prefix = `${pathname}/${access.bucket}/`

  async function forward(received: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '', headers } = received
    const key = method === 'GET' && !url.includes('?') && url.startsWith(prefix) ? url.slice(prefix.length) : ''
    const signed =
      key === '' ? undefined : new URL((await objects.presignGet(decodeURIComponent(key), EXPIRES_IN_S)).url)
    const sent = request({
      host: '127.0.0.1',
      port,
      method,
      path: signed ? signed.pathname + signed.search : url,
      headers: signed ? { host: signed.host } : headers,
    })
    sent.on('response', answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    sent.on('error', () => response.destroy())
    received.pipe(sent)
  }

  const server = createServer((received, response) => void forward(received, response).catch(() => response.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    async close() {
      objects.close()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
