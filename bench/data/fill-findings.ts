import { setTimeout as delay } from 'node:timers/promises'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { DAY_MS } from '../../schemas/units.ts'
import { DAYS, workspaceId } from './stored-traces.ts'

/** Workspace of all findings. */
export const FINDINGS_WORKSPACE = workspaceId(0)
const SURFACES = 20
const SERVICES = 25
/** Every tenth occurrence belongs to finding 0. */
const FREQUENT_EVERY = 10
/** Each finding whose number is a multiple of this has several variants. */
const VARIED_EVERY = 500
const VARIANTS = 1_000
const INSERTS_PER_DAY = 12

const ID_OF_NUMBER = (number: string) =>
  `concat('fnd_', translate(leftPad(toString(${number}), 26, 'a'), '0189', 'wxyz'))`

/** The variants of a finding are side by side, as those of workers are. */
const VARIANT_ID = `concat(reinterpretAsFixedString(sipHash64(finding)), reinterpretAsFixedString(sipHash64(finding, variant)))`

/** Id of the finding with a tenth of all occurrences. */
export const FREQUENT_FINDING = `fnd_${'w'.padStart(26, 'a')}`

/**
 * Stores occurrences of findings over the last days, in the order of arrival. The materialized views derive the findings.
 * Every occurrence has its own trace, and every finding one surface and service.
 */
export async function fillFindings(client: ClickHouseClient, occurrences: number, findings: number): Promise<void> {
  for (const table of ['exceptions', 'findings', 'finding_variants', 'finding_buckets']) {
    await client.command({ query: `TRUNCATE TABLE ${table}` })
  }
  const inserts = DAYS * INSERTS_PER_DAY
  const perInsert = Math.floor(occurrences / inserts)
  const insertMs = DAY_MS / INSERTS_PER_DAY
  const beginMs = Date.now() - DAYS * DAY_MS
  for (let i = 0; i < inserts; i++) {
    const fromMs = Math.floor(beginMs + i * insertMs)
    await client.command({
      query: `
        INSERT INTO exceptions (workspace_id, surface_id, received_at, stored_at, variant_id, finding_id, trace_id, span_id,
          occurred_at_unix_nano, service_name, service_version, session_id, source, type, message, stacktrace)
        WITH if(seed % ${FREQUENT_EVERY} = 0, 0, 1 + intDiv(seed, ${FREQUENT_EVERY}) % ${findings - 1}) AS finding,
          if(finding % ${VARIED_EVERY} = 0, sipHash64(seed) % ${VARIANTS}, 0) AS variant
        SELECT '${FINDINGS_WORKSPACE}', concat('srf_', toString(finding % ${SURFACES})),
          fromUnixTimestamp64Milli(toInt64(${fromMs} + intDiv(number * ${insertMs}, ${perInsert}))) AS at,
          at + toIntervalMillisecond(500), ${VARIANT_ID}, ${ID_OF_NUMBER('finding')}, reinterpretAsFixedString(sipHash128(seed)),
          reinterpretAsFixedString(seed), toUnixTimestamp64Nano(toDateTime64(at, 9)),
          concat('service-', toString(finding % ${SERVICES})), '2.14.3', concat('session-', toString(seed % 100000)),
          'span_event', 'OrderError', concat('cannot read property ', toString(finding), ' of order ', toString(seed % 1000)),
          repeat('at load (https://shop.example.com/app.js:1:20433)\\n', 8)
        FROM (SELECT number, sipHash64(number + ${i * perInsert}) AS seed FROM numbers(${perInsert}))`,
      clickhouse_settings: {
        async_insert: 0,
        wait_end_of_query: 1,
        insert_deduplicate: 0,
        min_insert_block_size_rows: String(perInsert),
      },
    })
    // Lets an interruption be handled.
    await delay(0)
  }
}
