import { OTLPTraceExporter as JsonTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { afterEach, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { RawConnection, rawRequest } from '../../../test/support/clients/raw-http-client.ts'
import { postRoute, useHttpServer } from '../../../test/support/services/test-http-server.ts'
import { problemReply, type Route } from '../route.ts'

const { serve, statuses } = useHttpServer()
const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** Refuses the first request on its head, as a queue without room does, and accepts the next one. */
function refusingOnce(): Route {
  let requests = 0
  const problem = { code: 'INGEST_BACKPRESSURE', message: 'later', retryAfterSeconds: 1 } as const
  const accept = () => (requests++ === 0 ? problemReply(problem) : () => ({ status: 200 }))
  return postRoute('/v1/traces', accept, { bodyLimitBytes: 20 * MIB })
}

async function spanOf(bytes: number) {
  const spans = new InMemorySpanExporter()
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] })
  stops.push(() => provider.shutdown())
  provider
    .getTracer('test')
    .startSpan('large', { attributes: { text: 'x'.repeat(bytes) } })
    .end()
  await provider.forceFlush()
  return spans.getFinishedSpans()
}

it.each([
  ['protobuf', ProtobufTraceExporter, MIB / 2],
  ['protobuf', ProtobufTraceExporter, 8 * MIB],
  ['JSON', JsonTraceExporter, 8 * MIB],
] as const)(
  'an exporter of OpenTelemetry sees the refusal of an export in %s and sends it again (%#)',
  async (_, Exporter, bytes) => {
    const port = await serve([refusingOnce()])
    const exporter = new Exporter({ url: `http://127.0.0.1:${port}/v1/traces`, timeoutMillis: 8_000 })
    stops.push(() => exporter.shutdown())
    const spans = await spanOf(bytes)
    const result = await new Promise(resolve => exporter.export(spans, resolve))
    expect(result).toEqual({ code: 0 })
    expect(statuses).toEqual([429, 200])
  },
)

it('a client that writes its whole body before it reads sees the refusal, and uses the connection again', async () => {
  const port = await serve([refusingOnce()])
  const connection = new RawConnection(port)
  connection.socket.pause()
  const body = Buffer.alloc(MIB - 1_000, 120)
  connection.send(rawRequest('POST', '/v1/traces', { 'content-length': String(body.length) })).send(body)
  await new Promise(resolve => connection.socket.once('drain', resolve))
  connection.socket.resume()
  expect((await connection.response()).status).toBe(429)
  connection.send(rawRequest('POST', '/v1/traces', {}, 'x'))
  expect((await connection.responses(2)).map(({ status }) => status)).toEqual([429, 200])
  connection.socket.destroy()
})
