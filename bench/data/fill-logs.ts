import { type Slot, slotsUntil, workspaceIdOf, workspaceNumberOf } from './filled-time.ts'
import { fillWithParts, type StoredRows, storedRows, withPatientClient } from './insert-parts.ts'

const SERVICES = 24
const INSTANCES = 4
const USERS = 200_000
const RECORDS_PER_TRACE = 5
/** Sessions of a workspace that are active at a time, each for a quarter of an hour. */
const SESSIONS_AT_ONCE = 200
const SESSION_NANOS = 900_000_000_000n

/**
 * Fills the emptied table `logs` with records of the days that end at `endMs`, as merges would leave them: each part has the
 * records of a few hours. Texts are like those of bench/payloads/log-payload.ts.
 */
export async function fillLogs(url: string, records: number, endMs: number): Promise<StoredRows> {
  return withPatientClient(url, async client => {
    const slots = slotsUntil(endMs)
    const perSlot = Math.floor(records / slots.length)
    await fillWithParts(
      client,
      'logs',
      slots.map(slot => insertLogs(slot, perSlot)),
    )
    return storedRows(client, 'logs')
  })
}

/** Name of a service of the records. The first ones have most of them. */
export const logService = (number: number | string) => `shop-${number}`

const hash = (...parts: string[]) => `lower(hex(sipHash64(${parts.join(', ')})))`

const BODY = `
  multiIf(
    seed % 4 = 0, concat('GET /api/orders/', toString(seed % 1000000), ' 200 in ', toString(seed % 900), ' ms from 10.1.',
      toString(seed % 251), '.', toString(seed % 241), ' request_id=', ${hash('seed', '1')}, ${hash('seed', '2')}),
    seed % 4 = 1, concat('User ', toString(seed % ${USERS}), ' added product ', toString(seed % 5003), ' to the cart'),
    seed % 4 = 2, concat('Connection to database orders-', toString(seed % 8), ' timed out after ', toString(seed % 30011),
      ' ms, retrying attempt ', toString(seed % 7)),
    concat('payment processed order_id=', ${hash('seed', '3')}, ' amount=', toString(seed % 100003 / 100),
      ' currency=EUR provider=stripe'))`

const RESOURCE = `
  concat('{"service.name":"', service, '","service.version":"2.14.3","service.instance.id":"0f7c1b1e-8d4f-4f0e-9a57-', instance,
    '","deployment.environment.name":"production","host.name":"ip-10-12-33-', instance,
    '.eu-central-1.compute.internal","process.pid":31337,"process.runtime.name":"nodejs","process.runtime.version":"22.20.0",',
    '"telemetry.sdk.language":"nodejs","telemetry.sdk.version":"2.1.0"}')`

/** Returns an INSERT of records. Those of a trace follow one another and are of one workspace, service and session. */
function insertLogs({ number, fromMs, lengthMs }: Slot, records: number): string {
  const stepNanos = (BigInt(lengthMs) * 1_000_000n) / BigInt(records)
  return `
    INSERT INTO logs (workspace_id, surface_id, received_at, service_name, service_version, resource, resource_schema_url,
      scope_name, scope_version, timestamp, time_unix_nano, observed_time_unix_nano, severity_number, severity_text, body,
      body_type, attributes, attribute_types, flags, trace_id, span_id, session_id)
    SELECT workspace, concat('srf_', workspace), fromUnixTimestamp64Milli(intDiv(nanos, 1000000) + 200, 'UTC'), service,
      '2.14.3', ${RESOURCE}, 'https://opentelemetry.io/schemas/1.37.0', '@opentelemetry/instrumentation-pino', '0.51.0',
      fromUnixTimestamp64Nano(nanos, 'UTC'), toUInt64(nanos), toUInt64(nanos + 40000), severity.1, severity.2, ${BODY},
      'string',
      map('logger.name', ['shop.http', 'shop.orders', 'shop.payments', 'shop.db'][seed % 4 + 1],
        'code.function.name', 'OrderRepository.load', 'code.line.number', toString(120 + seed % 40),
        'enduser.id', concat('user-', toString(intDiv(seed, 64) % ${USERS})), 'session.id', session),
      [1, 1, 3, 1, 1], 1, reinterpretAsFixedString(sipHash128(traceNumber)), reinterpretAsFixedString(sipHash64(traceNumber, 1)),
      session
    FROM (
      SELECT n, intDiv(n, ${RECORDS_PER_TRACE}) AS traceNumber, sipHash64(n) AS seed, sipHash64(traceNumber, 2) AS ofTrace,
        toInt64(${BigInt(fromMs) * 1_000_000n} + (n - ${number * records}) * ${stepNanos} + seed % ${stepNanos}) AS nanos,
        ${workspaceNumberOf('sipHash64(traceNumber, 3)')} AS workspaceNumber, ${workspaceIdOf('workspaceNumber')} AS workspace,
        concat('shop-', toString(intDiv(${SERVICES} * pow(ofTrace % 1000, 2), 1000000))) AS service,
        concat(service, '-', toString(ofTrace % ${INSTANCES})) AS instance,
        multiIf(seed % 20 = 0, (17, 'ERROR'), seed % 20 < 3, (13, 'WARN'), seed % 20 < 6, (5, 'DEBUG'), (9, 'INFO')) AS severity,
        concat('session-', ${hash('workspaceNumber', `intDiv(nanos, ${SESSION_NANOS})`, `ofTrace % ${SESSIONS_AT_ONCE}`)})
          AS session
      FROM (SELECT number + ${number * records} AS n FROM numbers(${records})))`
}
