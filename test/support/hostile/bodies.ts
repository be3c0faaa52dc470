import { randomBytes, randomFillSync } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'

const resource = (service: string, version?: string) => ({
  attributes: [
    attribute('service.name', service),
    ...(version === undefined ? [] : [attribute('service.version', version)]),
  ],
})

function attribute(key: string, value: string) {
  return { key, value: { value: { case: 'stringValue' as const, value } } }
}

const nowNano = () => BigInt(Date.now()) * 1_000_000n

/** Encodes an export of one small span. */
export function oneSpan(service: string): Uint8Array {
  return spanWith({ service })
}

/** Texts of a span; what is left out is short or absent. */
export interface SpanTexts {
  readonly service?: string
  readonly version?: string
  readonly sessionId?: string
  readonly name?: string
  /** Makes the span a failed one with this exception. */
  readonly exception?: { readonly type: string; readonly message: string; readonly stacktrace?: string }
  readonly exceptionTimeUnixNano?: bigint
}

/** Encodes an export of one span with these texts. */
export function spanWith(texts: SpanTexts): Uint8Array {
  const { exception } = texts
  const endTimeUnixNano = nowNano()
  return toBinary(
    ExportTraceServiceRequestSchema,
    create(ExportTraceServiceRequestSchema, {
      resourceSpans: [
        {
          resource: resource(texts.service ?? 'attacker', texts.version),
          scopeSpans: [
            {
              spans: [
                {
                  traceId: randomBytes(16),
                  spanId: randomBytes(8),
                  name: texts.name ?? 'GET /',
                  startTimeUnixNano: endTimeUnixNano - 1_000_000n,
                  endTimeUnixNano,
                  attributes: texts.sessionId === undefined ? [] : [attribute('session.id', texts.sessionId)],
                  ...(exception && {
                    status: { code: 2, message: exception.message },
                    events: [
                      {
                        name: 'exception',
                        timeUnixNano: texts.exceptionTimeUnixNano ?? endTimeUnixNano,
                        attributes: [
                          attribute('exception.type', exception.type),
                          attribute('exception.message', exception.message),
                          ...(exception.stacktrace === undefined
                            ? []
                            : [attribute('exception.stacktrace', exception.stacktrace)]),
                        ],
                      },
                    ],
                  }),
                },
              ],
            },
          ],
        },
      ],
    }),
  )
}

/** Encodes an export of one small log record. */
export function oneLog(service: string): Uint8Array {
  const timeUnixNano = nowNano()
  const body = { value: { case: 'stringValue' as const, value: 'the cart is empty' } }
  return toBinary(
    ExportLogsServiceRequestSchema,
    create(ExportLogsServiceRequestSchema, {
      resourceLogs: [{ resource: resource(service), scopeLogs: [{ logRecords: [{ timeUnixNano, body }] }] }],
    }),
  )
}

/** Encodes an export of one point of a gauge. */
export function onePoint(service: string): Uint8Array {
  const dataPoints = [{ timeUnixNano: nowNano(), value: { case: 'asDouble' as const, value: 1 } }]
  const metrics = [{ name: 'carts', data: { case: 'gauge' as const, value: { dataPoints } } }]
  return toBinary(
    ExportMetricsServiceRequestSchema,
    create(ExportMetricsServiceRequestSchema, {
      resourceMetrics: [{ resource: resource(service), scopeMetrics: [{ metrics }] }],
    }),
  )
}

/** Encodes one field with the given content. */
export function field(number: number, ...contents: Uint8Array[]): Buffer {
  const content = Buffer.concat(contents)
  return Buffer.from(new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(content).finish())
}

/** Repeats an empty message of a field, two bytes each. */
function empties(number: number, count: number): Buffer {
  return Buffer.alloc(2 * count, Buffer.from([(number << 3) | WireType.LengthDelimited, 0]))
}

/** Encodes an export of `count` log records that have no field: 2 bytes each, and a wide row each. */
export const emptyLogRecords = (count: number) => field(1, field(2, empties(2, count)))

/** Encodes an export of `count` points of a gauge that have no field. */
export const emptyPoints = (count: number) =>
  field(1, field(2, field(2, field(1, Buffer.from('m')), field(5, empties(1, count)))))

/** Encodes an export of one point with `count` exemplars that have no field. */
export const emptyExemplars = (count: number) =>
  field(1, field(2, field(2, field(1, Buffer.from('m')), field(5, field(1, empties(5, count))))))

/** Encodes an export of `count` spans that have ids and nothing else. */
export function bareSpans(count: number): Buffer {
  const span = field(2, field(1, randomBytes(16)), field(2, randomBytes(8)))
  return field(1, field(2, Buffer.concat(Array.from({ length: count }, () => span))))
}

/** Encodes an export of `count` spans, each with its own exception: a finding each. */
export function failedSpans(count: number, seed: string): Buffer {
  const attributeOf = (key: string, value: string) =>
    field(3, field(1, Buffer.from(key)), field(2, field(1, Buffer.from(value))))
  const nameOf = (i: number) => `E${seed}${i.toString(36).padStart(5, '0')}`
  const ids = [Buffer.alloc(16, 1), Buffer.alloc(8, 2)] as const
  const event = field(
    11,
    field(2, Buffer.from('exception')),
    attributeOf('exception.type', nameOf(0)),
    attributeOf('exception.message', 'made up'),
  )
  const span = field(2, field(1, ids[0]), field(2, ids[1]), event)
  // Copies of one span, of which ids and type change: encoding each took ten times as long as an attack.
  const spans = Buffer.alloc(count * span.length, span)
  for (let i = 0; i < count; i++) {
    const at = i * span.length
    for (const id of ids) randomFillSync(spans, at + span.indexOf(id), id.length)
    spans.write(nameOf(i), at + span.indexOf(nameOf(0)))
  }
  return field(1, field(2, spans))
}

/** Encodes an export of a span for each of these exceptions, which are the attributes of an event. */
export function spansWithExceptions(exceptions: readonly Readonly<Record<string, string>>[]): Buffer {
  const spans = exceptions.map(attributes => {
    const encoded = Object.entries(attributes).map(([key, value]) =>
      field(3, field(1, Buffer.from(key)), field(2, field(1, Buffer.from(value)))),
    )
    const event = field(11, field(2, Buffer.from('exception')), ...encoded)
    return field(2, field(1, randomBytes(16)), field(2, randomBytes(8)), event)
  })
  return field(1, field(2, ...spans))
}
