import { getCACertificates } from 'node:tls'
import { Client, compressionAlgorithms, credentials, Metadata } from '@grpc/grpc-js'

/** Paths of the methods that take exports. */
export const EXPORT_METHODS = {
  traces: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
  logs: '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
  metrics: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
} as const

/** The outcome of a call. */
interface CallOutcome {
  readonly code: number
  readonly details: string
  /** The message of a successful call. */
  readonly message: Buffer | undefined
  /** Metadata of the response, or of its trailers if it succeeded. */
  readonly trailers: Metadata
}

/** The official client of gRPC, whose messages are bytes. */
export class GrpcClient {
  readonly #client: Client

  /** Connects to an address, with TLS if it begins with `https`. */
  constructor(url: string, { isGzip = false } = {}) {
    const { protocol, host } = new URL(url)
    const authorities = Buffer.from(getCACertificates('default').join('\n'))
    const secured = protocol === 'https:' ? credentials.createSsl(authorities) : credentials.createInsecure()
    this.#client = new Client(host, secured, {
      'grpc.max_send_message_length': -1,
      'grpc.default_compression_algorithm': isGzip ? compressionAlgorithms.gzip : compressionAlgorithms.identity,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 1_000,
    })
  }

  /** Calls a method, with a deadline of 10 s. */
  call(path: string, message: Buffer, metadata: Readonly<Record<string, string>> = {}): Promise<CallOutcome> {
    const headers = new Metadata()
    for (const [name, value] of Object.entries(metadata)) headers.set(name, value)
    const asIs = (bytes: Buffer) => bytes
    return new Promise(resolve => {
      let answer: Buffer | undefined
      const options = { deadline: Date.now() + 10_000 }
      const call = this.#client.makeUnaryRequest(
        path,
        asIs,
        asIs,
        message,
        headers,
        options,
        (_, received?: Buffer) => {
          answer = received
        },
      )
      // Emitted after the callback, and with the trailers also when the call has failed.
      call.on('status', ({ code, details, metadata: trailers }) =>
        resolve({ code, details, message: answer, trailers }),
      )
    })
  }

  close(): void {
    this.#client.close()
  }
}
