import { type ClientHttp2Session, connect } from 'node:http2'
import { framed } from '../../shared/http/grpc/message.ts'
import { tracePayload } from '../payloads/trace-payload.ts'

/** A load of calls of one span in a closed loop, as a message to this process. */
export interface GrpcPlan {
  readonly port: number
  readonly path: string
  readonly publicKey: string
  readonly connections: number
  /** Calls in flight on each connection. */
  readonly streams: number
  readonly durationMs: number
}

/** The number of calls by their status, as a message from this process. */
export type GrpcLoad = Readonly<Record<string, number>>

const MESSAGE = framed(tracePayload({ spans: 1, spansPerTrace: 1, exceptionEvery: 0, service: 'shop' }))

async function run({ port, path, publicKey, connections, streams, durationMs }: GrpcPlan): Promise<GrpcLoad> {
  const until = performance.now() + durationMs
  const statuses: Record<string, number> = {}
  const keepCalling = async (session: ClientHttp2Session) => {
    while (performance.now() < until) {
      const status = await call(session, path, publicKey)
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const session = connect(`http://127.0.0.1:${port}`)
      await Promise.all(Array.from({ length: streams }, () => keepCalling(session)))
      session.close()
    }),
  )
  return statuses
}

function call(session: ClientHttp2Session, path: string, publicKey: string): Promise<string> {
  const stream = session.request({
    ...{ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' },
    ...{ te: 'trailers', 'x-service-public-key': publicKey },
  })
  return new Promise(resolve => {
    let status = 'no status'
    const read = (headers: Readonly<Record<string, unknown>>) => {
      status = String(headers['grpc-status'] ?? status)
    }
    stream.on('response', read)
    stream.on('trailers', read)
    stream.on('error', () => resolve('broken off'))
    stream.on('close', () => resolve(status))
    stream.resume()
    stream.end(MESSAGE)
  })
}

process.on('message', (plan: GrpcPlan) => void run(plan).then(load => process.send?.(load)))
process.on('disconnect', () => process.exit(0))
