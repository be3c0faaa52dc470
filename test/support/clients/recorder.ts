import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  type ClientHttp2Session,
  connect,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { SIGNALS, type Signal } from '../../../schemas/queues/names.ts'
import { EXPORT_METHODS } from './grpc-client.ts'

/** A message that the service has accepted, without its compression. */
export interface RecordedExport {
  readonly signal: Signal
  readonly isJson: boolean
  readonly message: Buffer
}

/** Reverse proxies before both ports of an edge, which keep what passes. */
export interface Recorder {
  readonly httpUrl: string
  readonly grpcUrl: string
  /** Returns the accepted messages since the last call, and a line for each export that was not accepted. */
  take(): { exports: RecordedExport[]; refusals: string[] }
  close(): Promise<void>
}

const ANSWER_DEADLINE_MS = 30_000

/** Starts a proxy for OTLP/HTTP and one for OTLP/gRPC. */
export async function startRecorder(target: { ingestUrl: string; grpcUrl: string }): Promise<Recorder> {
  let exports: RecordedExport[] = []
  let refusals: string[] = []
  function keep(path: string, headers: IncomingHttpHeaders, refusal: string | undefined, bytes: () => Buffer): void {
    const signal = SIGNALS.find(name => path === `/v1/${name}` || path === EXPORT_METHODS[name])
    if (refusal !== undefined || signal === undefined) refusals.push(`${path}: ${refusal ?? 'no path of an export'}`)
    else exports.push({ signal, isJson: headers['content-type'] === 'application/json', message: bytes() })
  }

  const http = createServer(async (request, response) => {
    const body = await buffer(request)
    const status = await forward(target.ingestUrl, request, body, response)
    const bytes = () => (request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body)
    keep(request.url ?? '', request.headers, status === 200 ? undefined : `status ${status}`, bytes)
  })

  const upstream = connect(target.grpcUrl)
  const grpc = createHttp2Server()
  grpc.on('stream', async (stream, headers) => {
    stream.on('error', () => {})
    const frame = await buffer(stream)
    const status = await forwardCall(upstream, headers, frame, stream)
    // The frame of gRPC: a byte that is 1 if the message is compressed, and its length in four bytes.
    const bytes = () => (frame[0] === 1 ? gunzipSync(frame.subarray(5)) : frame.subarray(5))
    keep(headers[':path'] ?? '', headers, status === '0' ? undefined : `grpc-status ${status}`, bytes)
  })

  return {
    httpUrl: await listen(http),
    grpcUrl: await listen(grpc),
    take() {
      const taken = { exports, refusals }
      exports = []
      refusals = []
      return taken
    },
    async close() {
      upstream.destroy()
      http.closeAllConnections()
      for (const server of [http, grpc]) server.close()
      await once(http, 'close')
    },
  }
}

async function listen(server: Server | ReturnType<typeof createHttp2Server>): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Headers of one connection, which a proxy does not pass on, and those of a body that fetch has uncompressed. */
const OWN_HEADERS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host', 'content-length', 'expect'])

/** Passes a request on with its bytes as they are, and the response back. Returns its status. */
async function forward(
  origin: string,
  request: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<number> {
  const headers = Object.entries(request.headers).filter(([name]) => !OWN_HEADERS.has(name))
  const answer = await fetch(origin + request.url, {
    method: request.method ?? 'POST',
    headers: headers.map(([name, value]): [string, string] => [name, String(value)]),
    body: new Uint8Array(body),
    signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
  })
  for (const [name, value] of answer.headers) if (!OWN_HEADERS.has(name)) response.setHeader(name, value)
  response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()))
  return answer.status
}

/** Passes a call of gRPC on, and its response and trailers back. Returns its status of gRPC. */
async function forwardCall(
  upstream: ClientHttp2Session,
  { ':authority': _, ...headers }: IncomingHttpHeaders,
  frame: Buffer,
  stream: ServerHttp2Stream,
): Promise<string> {
  const call = upstream.request({ ...headers, ':authority': 'recorder' })
  call.setTimeout(ANSWER_DEADLINE_MS, () => call.destroy(new Error('the edge does not answer')))
  let head: OutgoingHttpHeaders = {}
  let trailers: OutgoingHttpHeaders = {}
  call.on('response', received => {
    head = received
  })
  call.on('trailers', received => {
    trailers = received
  })
  call.end(frame)
  const message = await buffer(call)
  const status = String(trailers['grpc-status'] ?? head['grpc-status'])
  if (stream.destroyed) return status
  const hasTrailers = Object.keys(trailers).length > 0
  if (hasTrailers) stream.on('wantTrailers', () => stream.sendTrailers(trailers))
  stream.respond(head, { waitForTrailers: hasTrailers, endStream: !hasTrailers && message.length === 0 })
  if (hasTrailers || message.length > 0) stream.end(message)
  return status
}
