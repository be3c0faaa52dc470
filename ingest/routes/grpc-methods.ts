import { EXPORT_BYTES } from '../../schemas/http/limits.ts'
import { SIGNALS, type Signal } from '../../schemas/queues/names.ts'
import type { GrpcMethod } from '../../shared/http/grpc/exchange.ts'
import { grpcProblem } from '../../shared/http/grpc/status.ts'
import { CONTENT_ENCODINGS } from '../../shared/queue/payload-frame.ts'
import { withSurface } from './surface-route.ts'
import { type ExportDeps, exportTaker } from './take-export.ts'

/** The services of OTLP, by signal. */
const SERVICES: Readonly<Record<Signal, string>> = {
  traces: 'opentelemetry.proto.collector.trace.v1.TraceService',
  logs: 'opentelemetry.proto.collector.logs.v1.LogsService',
  metrics: 'opentelemetry.proto.collector.metrics.v1.MetricsService',
}
const HEALTH = 'grpc.health.v1.Health'

/** Returns the methods of the edge by their paths: exports of each signal, and the check of its health. */
export function createGrpcMethods(deps: ExportDeps, isReady: () => true | string): ReadonlyMap<string, GrpcMethod> {
  const methods = [...SIGNALS.map(signal => exportMethod(deps, signal)), healthMethod(isReady)]
  return new Map(methods.map(method => [method.route.path, method]))
}

/** Takes exports as they are taken over HTTP: the message is enqueued as it was sent (docs/api/otlp.md#grpc). */
function exportMethod(deps: ExportDeps, signal: Signal): GrpcMethod {
  const taker = exportTaker(deps, signal, grpcProblem)
  return {
    route: { method: 'POST', path: `/${SERVICES[signal]}/Export` },
    limitBytes: EXPORT_BYTES,
    encodings: CONTENT_ENCODINGS.join(','),
    accept: call => withSurface(deps, call, call, call, taker),
  }
}

/** States of a service in `HealthCheckResponse`. */
const SERVING = Buffer.from([0x08, 1])
const NOT_SERVING = Buffer.from([0x08, 2])

/** Answers `grpc.health.v1.Health/Check` for the server and each of its services, without a key. */
function healthMethod(isReady: () => true | string): GrpcMethod {
  const known = new Set(['', HEALTH, ...Object.values(SERVICES)])
  return {
    route: { method: 'POST', path: `/${HEALTH}/Check` },
    limitBytes: 256,
    encodings: 'identity',
    accept: () => body => {
      // `HealthCheckRequest` has one field, whose name is shorter than 128 bytes.
      const service = body.length === 0 ? '' : body.toString('utf8', 2)
      if (!known.has(service)) return grpcProblem({ code: 'NOT_FOUND', message: 'there is no such service' })
      return { status: 200, body: isReady() === true ? SERVING : NOT_SERVING }
    },
  }
}
