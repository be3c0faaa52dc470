import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { call, signToken } from '../../../../support/services/api.ts'
import { api } from '../fixture.ts'

const token = await signToken()
const PREFIX = '/prometheus/api/v1'

/** Response of the interface of Prometheus. */
interface PrometheusAnswer {
  readonly status: number
  readonly body: {
    readonly status: string
    readonly data?: unknown
    readonly errorType?: string
    readonly error?: string
    readonly warnings?: readonly string[]
  }
}

/** Sends a request; parameters may be repeated. */
export async function askPrometheus(
  path: string,
  parameters: readonly (readonly [string, string])[] | Record<string, string> = {},
  { method = 'GET', bearer = token } = {},
): Promise<PrometheusAnswer> {
  const text = String(new URLSearchParams(parameters as Record<string, string>))
  const answer =
    method === 'GET'
      ? await call(api.baseUrl, `GET ${PREFIX}${path}?${text}`, { bearer })
      : await call(api.baseUrl, `POST ${PREFIX}${path}`, {
          bearer,
          body: text,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        })
  return { status: answer.status, body: answer.body as PrometheusAnswer['body'] }
}

/** A server that adds the token to requests, for clients that cannot send a header. */
export async function startTokenProxy(): Promise<{ url: string; close: () => void }> {
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const answer = await fetch(`${api.baseUrl}${request.url}`, {
      method: request.method ?? 'GET',
      headers: {
        authorization: `Bearer ${token}`,
        ...(request.headers['content-type'] && { 'content-type': request.headers['content-type'] }),
      },
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    })
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
    response.end(Buffer.from(await answer.arrayBuffer()))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/prometheus`, close: () => server.close() }
}
