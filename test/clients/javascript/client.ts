import {
  type Attributes,
  context,
  SeverityNumber,
  SpanKind,
  SpanStatusCode,
  trace,
  ValueType,
} from '@opentelemetry/api'
import { OTLPLogExporter as GrpcLogExporter } from '@opentelemetry/exporter-logs-otlp-grpc'
import { OTLPLogExporter as JsonLogExporter } from '@opentelemetry/exporter-logs-otlp-http'
import { OTLPLogExporter as ProtobufLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { OTLPMetricExporter as GrpcMetricExporter } from '@opentelemetry/exporter-metrics-otlp-grpc'
import { OTLPMetricExporter as JsonMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter as ProtobufMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter as GrpcTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc'
import { OTLPTraceExporter as JsonTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, detectResources, envDetector } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'
import { AggregationType, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'

/** Sends every kind of telemetry with the SDK of JavaScript, which reads the variables of OpenTelemetry alone. */
const EXPORTERS = {
  grpc: [GrpcTraceExporter, GrpcLogExporter, GrpcMetricExporter],
  'http/json': [JsonTraceExporter, JsonLogExporter, JsonMetricExporter],
  'http/protobuf': [ProtobufTraceExporter, ProtobufLogExporter, ProtobufMetricExporter],
} as const
const [TraceExporter, LogExporter, MetricExporter] =
  EXPORTERS[process.env.OTEL_EXPORTER_OTLP_PROTOCOL as keyof typeof EXPORTERS]
const resource = defaultResource().merge(detectResources({ detectors: [envDetector] }))

const ATTRIBUTES: Attributes = {
  text: 'Grüße aus Zürich 🫕\n"quoted"\\',
  empty: '',
  bool: true,
  int: Number.MIN_SAFE_INTEGER,
  double: 0.1,
  texts: ['a', 'ö'],
  numbers: [1, -2.5, 2 ** 53],
  bools: [true, false],
  'session.id': 'session-1',
  'http.route': '/cart/:id',
  'http.response.status_code': 500,
}

const tracers = new TracerProvider({
  resource,
  spanProcessors: [new BatchSpanProcessor({ exporter: new TraceExporter() })],
})
const tracer = tracers.getTracer('shop', '0.9', { schemaUrl: 'https://opentelemetry.io/schemas/1.30.0' })
const other = { traceId: 'ab'.repeat(16), spanId: 'cd'.repeat(8), traceFlags: 1 }
for (const kind of Object.values(SpanKind).filter(value => typeof value === 'number')) {
  const parent = tracer.startSpan(`parent ${kind}`, { kind, attributes: ATTRIBUTES })
  const links = [{ context: other, attributes: ATTRIBUTES }, { context: parent.spanContext() }]
  const child = tracer.startSpan('Käse', { links }, trace.setSpan(context.active(), parent))
  child.addEvent('step', ATTRIBUTES)
  child.addEvent('at', new Date(1_795_000_000_123))
  child.recordException(new TypeError('amount 17 is out of range'))
  child.setStatus({ code: SpanStatusCode.ERROR, message: 'Größe' }).end()
  parent.setStatus({ code: SpanStatusCode.OK }).end()
}

const loggers = new LoggerProvider({
  resource,
  processors: [new BatchLogRecordProcessor({ exporter: new LogExporter() })],
})
const logger = loggers.getLogger('shop', '0.9')
const BODIES = [
  'Zürich 🫕',
  '',
  42,
  0.1,
  true,
  ['a', 1, [false]],
  { a: { b: [1, 'ü'] } },
  new Uint8Array([0, 1, 254, 255]),
]
for (const [i, body] of BODIES.entries()) {
  logger.emit({
    body,
    severityNumber: SeverityNumber.INFO + i,
    severityText: 'INFO',
    timestamp: new Date(1_795_000_000_000 + i),
    attributes: { ...ATTRIBUTES, nested: { a: [1, 'b'] }, bytes: new Uint8Array([0, 255]) },
    eventName: 'order.placed',
    ...(i > 0 && { context: trace.setSpanContext(context.active(), other) }),
  })
}

const meters = new MeterProvider({
  resource,
  readers: [new PeriodicExportingMetricReader({ exporter: new MetricExporter() })],
  views: [{ instrumentName: 'size', aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM } }],
})
const meter = meters.getMeter('shop', '0.9')
const orders = meter.createCounter('orders', {
  unit: '{order}',
  description: 'Placed orders',
  valueType: ValueType.INT,
})
orders.add(Number.MAX_SAFE_INTEGER, ATTRIBUTES)
meter.createCounter('revenue', { unit: 'CHF' }).add(12.75)
meter.createUpDownCounter('queue', { valueType: ValueType.INT }).add(-5, ATTRIBUTES)
meter.createGauge('temperature', { unit: 'Cel' }).record(-40.5, { room: 'Büro' })
const [duration, size] = [meter.createHistogram('duration', { unit: 'ms' }), meter.createHistogram('size')]
for (const value of [0, 3, 70, 12_345.6]) duration.record(value, ATTRIBUTES)
for (const value of [0, 1, 1_000, 1_000_000]) size.record(value, ATTRIBUTES)

for (const provider of [tracers, loggers, meters]) {
  await provider.forceFlush()
  await provider.shutdown()
}
