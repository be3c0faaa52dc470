import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { int, text, webService } from './attributes.ts'

/** Options of `logPayload`. */
interface LogPayloadOptions {
  records: number
  /** One in this many records carries an exception with its stack. 0: none. */
  exceptionEvery: number
  service?: string
}

const SEVERITIES = [
  [9, 'INFO'],
  [9, 'INFO'],
  [5, 'DEBUG'],
  [13, 'WARN'],
  [17, 'ERROR'],
] as const
const LOGGERS = ['shop.http', 'shop.orders', 'shop.payments', 'shop.db']
const RECORDS_PER_TRACE = 5

/**
 * Creates an ExportLogsServiceRequest like that of a web service: ten resource attributes, five attributes per record.
 */
export function logPayload({ records, exceptionEvery, service = 'shop-checkout' }: LogPayloadOptions): Buffer {
  let traceId = randomBytes(16)
  let spanId = randomBytes(8)
  const request = create(ExportLogsServiceRequestSchema, {
    resourceLogs: [
      {
        resource: { attributes: webService(service) },
        schemaUrl: 'https://opentelemetry.io/schemas/1.37.0',
        scopeLogs: [
          {
            scope: { name: '@opentelemetry/instrumentation-pino', version: '0.51.0' },
            logRecords: Array.from({ length: records }, (_, i) => {
              if (i % RECORDS_PER_TRACE === 0) {
                traceId = randomBytes(16)
                spanId = randomBytes(8)
              }
              const [severityNumber, severityText] = SEVERITIES[i % SEVERITIES.length] as (typeof SEVERITIES)[number]
              const timeUnixNano = BigInt(Date.now()) * 1_000_000n + BigInt(i) * 1_234_567n
              const fails = exceptionEvery > 0 && i % exceptionEvery === 0
              return {
                timeUnixNano,
                observedTimeUnixNano: timeUnixNano + 40_000n,
                severityNumber,
                severityText,
                body: { value: { case: 'stringValue' as const, value: message(i) } },
                attributes: [
                  text('logger.name', LOGGERS[i % LOGGERS.length] as string),
                  text('code.function.name', 'OrderRepository.load'),
                  int('code.line.number', BigInt(120 + (i % 40))),
                  text('enduser.id', `user-${randomInt(200_000)}`),
                  text('session.id', `0f7c1b1e-8d4f-4f0e-9a57-${String(i % 50).padStart(12, '0')}`),
                  ...(fails ? exceptionAttributes(i) : []),
                ],
                flags: 1,
                traceId,
                spanId,
              }
            }),
          },
        ],
      },
    ],
  })
  return Buffer.from(toBinary(ExportLogsServiceRequestSchema, request))
}

/** Creates a log message of words and of numbers, most of which occur only once. */
function message(i: number): string {
  switch (i % 4) {
    case 0:
      return `GET /api/orders/${randomInt(1_000_000)} 200 in ${randomInt(900)} ms from 10.1.${randomInt(256)}.${randomInt(256)} request_id=${randomUUID()}`
    case 1:
      return `User ${randomInt(200_000)} added product ${randomInt(5_000)} to the cart`
    case 2:
      return `Connection to database orders-${randomInt(8)} timed out after ${randomInt(30_000)} ms, retrying attempt ${randomInt(7)}`
    default:
      return `payment processed order_id=${randomBytes(8).toString('hex')} amount=${randomInt(100_000) / 100} currency=EUR provider=stripe`
  }
}

function exceptionAttributes(i: number) {
  const frames = Array.from(
    { length: 12 },
    (_, depth) =>
      `    at OrderRepository.load${depth} (/srv/shop/dist/orders/repository-${depth}.js:${120 + depth}:17)`,
  )
  return [
    text('exception.type', 'OrderNotFoundError'),
    text('exception.message', `order ${i} was not found`),
    text('exception.stacktrace', [`OrderNotFoundError: order ${i} was not found`, ...frames].join('\n')),
  ]
}
