import { create, toBinary } from '@bufbuild/protobuf'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../schemas/units.ts'
import { createChanges } from '../load/renewal.ts'
import { int, text, webService } from '../payloads/attributes.ts'
import { createRandom, drawBytes, type Random } from '../payloads/zipf.ts'
import { type Slot, slotsUntil, workspaceNumberOf } from './filled-time.ts'
import { fillWithParts, type StoredRows, storedRows, withPatientClient } from './insert-parts.ts'
import { type Arrival, storeArrivals } from './store-arrivals.ts'
import { workspaceId } from './stored-traces.ts'
import { mix, renewedId, Template, valueMark, valueText } from './template.ts'

/** A stored record of the first workspace, with values to search for. */
export interface StoredRecord {
  /** Unix milliseconds of the start of its hour. */
  readonly hourMs: number
  /** A word that no other record has. */
  readonly orderId: string
  readonly traceId: string
  readonly user: string
}

/** Result of filling the table. */
interface FilledLogs extends StoredRows {
  /** One record of each full hour. */
  readonly records: readonly StoredRecord[]
}

const SERVICES = 24
const INSTANCES = 4
const USERS = 200_000
const RECORDS_PER_TRACE = 5
/** Records of a payload, which are of one service and session. */
const RECORDS = 20
/** Sessions of a workspace that are active at a time, each for a quarter of an hour. */
const SESSIONS_AT_ONCE = 200
const SESSION_MS = 15 * MINUTE_MS
/** Numbers of the values of a record: each has its own ten. The last one is its user. */
const VALUES = 10
const USER = 9
const SESSION = RECORDS * VALUES
/** Every fourth record is of a payment. */
const PAYMENT = 3

/**
 * Fills the emptied table `logs` with records of the days that end at `endMs`, as merges would leave them: each part has the
 * records of a few hours. Texts are like those of bench/payloads/log-payload.ts.
 */
export async function fillLogs(url: string, records: number, endMs: number): Promise<FilledLogs> {
  return withPatientClient(url, async client => {
    const slots = slotsUntil(endMs)
    const perSlot = Math.floor(records / slots.length / RECORDS)
    const random = createRandom(2)
    const payloads = Array.from({ length: SERVICES * INSTANCES }, (_, i) =>
      createPayload(random, logService(Math.floor(i / INSTANCES)), i % INSTANCES),
    )
    const nextChange = createChanges(2)
    const stored = new Map<number, StoredRecord>()
    await fillWithParts(
      client,
      'logs',
      slots.map(slot => {
        const changes = Array.from({ length: perSlot }, nextChange)
        return () =>
          storeArrivals(
            client,
            'logs',
            arrivalsOf(slot, payloads, changes, record => stored.set(record.hourMs, record)),
          )
      }),
    )
    const isFull = ({ hourMs }: StoredRecord) => hourMs > endMs - 5 * DAY_MS && hourMs + HOUR_MS <= endMs
    return { ...(await storedRows(client, 'logs')), records: [...stored.values()].filter(isFull) }
  })
}

/** Name of a service of the records. The first ones have most of them. */
export const logService = (number: number) => `shop-${number}`

interface Payload {
  readonly template: Template
  /** Trace of the first payment. */
  readonly traceId: Buffer
}

function* arrivalsOf(
  { number, fromMs, lengthMs }: Slot,
  payloads: readonly Payload[],
  changes: readonly number[],
  store: (record: StoredRecord) => void,
): Generator<Arrival> {
  const random = createRandom(number)
  for (const [i, change] of changes.entries()) {
    const service = Math.floor(SERVICES * random() ** 2)
    const { template, traceId } = payloads[service * INSTANCES + (i % INSTANCES)] as Payload
    const workspace = workspaceNumberOf(number * changes.length + i)
    const atMs = fromMs + (i / changes.length) * lengthMs
    const session = mix(Math.floor(atMs / SESSION_MS) * SESSIONS_AT_ONCE + (i % SESSIONS_AT_ONCE), workspace)
    const valueFor = (value: number) => {
      if (value === SESSION) return session
      return value % VALUES === USER ? mix(change, value) % USERS : mix(change, value)
    }
    yield {
      workspaceId: workspaceId(workspace),
      receivedAtMs: Math.floor(atMs) + 200,
      body: template.take(change, atMs, valueFor),
    }
    if (workspace > 0) continue
    const ofPayment = (value: number) => valueText(valueFor(PAYMENT * VALUES + value))
    store({
      hourMs: Math.floor(atMs / HOUR_MS) * HOUR_MS,
      orderId: ofPayment(0) + ofPayment(1),
      traceId: renewedId(traceId, change),
      user: `user-${ofPayment(USER)}`,
    })
  }
}

const SEVERITIES = [
  [17, 'ERROR'],
  [13, 'WARN'],
  [13, 'WARN'],
  [5, 'DEBUG'],
  [5, 'DEBUG'],
  [5, 'DEBUG'],
] as const
const LOGGERS = ['shop.http', 'shop.orders', 'shop.payments', 'shop.db']
const EVERY_NANOS = 12_345_678n

function createPayload(random: Random, service: string, instance: number): Payload {
  const traceIds = Array.from({ length: RECORDS / RECORDS_PER_TRACE }, () => drawBytes(random, 16))
  const logRecords = Array.from({ length: RECORDS }, (_, i) => {
    const [severityNumber, severityText] = SEVERITIES[(i * 7) % 20] ?? ([9, 'INFO'] as const)
    const timeUnixNano = 1_700_000_000_000_000_000n + BigInt(i) * EVERY_NANOS
    return {
      timeUnixNano,
      observedTimeUnixNano: timeUnixNano + 40_000n,
      severityNumber,
      severityText,
      body: { value: { case: 'stringValue' as const, value: message(i) } },
      attributes: [
        text('logger.name', LOGGERS[i % LOGGERS.length] as string),
        text('code.function.name', 'OrderRepository.load'),
        int('code.line.number', 120 + (i % 40)),
        text('enduser.id', `user-${valueMark(i * VALUES + USER)}`),
        text('session.id', `session-${valueMark(SESSION)}`),
      ],
      flags: 1,
      traceId: traceIds[Math.floor(i / RECORDS_PER_TRACE)] as Buffer,
      spanId: drawBytes(random, 8),
    }
  })
  const scopeLogs = [{ scope: { name: '@opentelemetry/instrumentation-pino', version: '0.51.0' }, logRecords }]
  const request = create(ExportLogsServiceRequestSchema, {
    resourceLogs: [{ resource: { attributes: webService(service, `${service}-${instance}`) }, scopeLogs }],
  })
  const body = Buffer.from(toBinary(ExportLogsServiceRequestSchema, request))
  return { template: new Template('logs', body), traceId: traceIds[0] as Buffer }
}

/** Creates a log message of words and of values, most of which occur only once. */
function message(record: number): string {
  const value = (number: number) => valueMark(record * VALUES + number)
  switch (record % 4) {
    case 0:
      return `GET /api/orders/${value(0)} 200 in ${record * 9} ms from 10.1.${record}.7 request_id=${value(1)}${value(2)}${value(3)}${value(4)}`
    case 1:
      return `User ${value(USER)} added product ${record * 49} to the cart`
    case 2:
      return `Connection to database orders-${record % 8} timed out after ${value(0)} ms, retrying attempt ${record % 7}`
    default:
      return `payment processed order_id=${value(0)}${value(1)} amount=${record * 3.17} currency=EUR provider=stripe`
  }
}
