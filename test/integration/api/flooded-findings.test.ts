import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { FindingsPage } from '../../../schemas/http/findings/schemas.ts'
import {
  call,
  createDatabase,
  insertExceptions,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `api_flooded_${process.pid}`
const FLOOD = 30_000
const HUGE = `fnd_${'h'.repeat(26)}`
const OTHERS = ['a', 'b', 'c'].map(letter => `fnd_${letter.repeat(26)}`)

describe('a workspace that one surface floods with findings', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let api: TestApi
  let bearer: string

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    api = await startApi(services, DATABASE)
    bearer = await signToken()
    await insertExceptions(
      client,
      OTHERS.map(findingId => ({ findingId, traceId: 'a'.repeat(32), surfaceId: 'srf_shop' })),
    )
    await client.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, finding_id, variant_id, trace_id, occurred_at_unix_nano,
                type, message, source)
              SELECT 'ws_1', 'srf_flood', now64(3),
                concat('fnd_', leftPad(replaceRegexpAll(toString(number), '[0189]', 'z'), 26, 'q')) AS id, sipHash128(id), unhex('${'b'.repeat(32)}'),
                toUnixTimestamp64Nano(now64(9)), 'E', concat('flood ', toString(number)), 'span_event'
              FROM numbers(${FLOOD})`,
      clickhouse_settings: { async_insert: 0 },
    })
    // Larger than what a worker stores, which cuts these texts.
    await client.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, finding_id, variant_id, service_name, service_version,
                occurred_at_unix_nano, type, message, source)
              SELECT 'ws_1', 'srf_huge', now64(3), '${HUGE}', sipHash128(number), repeat('s', 900000),
                concat(toString(number), repeat('v', 900000)), 1, repeat('t', 900000), repeat('m', 900000), 'log_record'
              FROM numbers(20)`,
      clickhouse_settings: { async_insert: 0, max_block_size: '1' },
    })
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  const ids = async (query: string) => {
    const { status, body } = await call(api.baseUrl, `GET /v3/findings?${query}`, { bearer })
    expect(status).toBe(200)
    return (body as FindingsPage).findings.map(({ id }) => id)
  }

  it('shows the findings of its other surfaces when a list is of their surface', async () => {
    expect((await ids('surface=srf_shop')).sort()).toEqual(OTHERS)
    expect((await ids('surface=srf_shop&q=not%20a%20function')).sort()).toEqual(OTHERS)
    expect(await ids('limit=100')).toHaveLength(100)
  })

  it('cuts the texts of a finding, however long they were stored', async () => {
    const { status, body } = await call(api.baseUrl, `GET /v3/findings/${HUGE}`, { bearer })
    expect(status).toBe(200)
    const { finding } = body as { finding: { serviceName: string; message: string; seenIn: Record<string, string[]> } }
    expect(finding.serviceName).toHaveLength(1_024)
    expect(finding.message).toHaveLength(8_192)
    expect(finding.seenIn.serviceVersions?.map(version => version.length)).toEqual(Array(20).fill(256))
    expect(finding.seenIn.serviceNames).toEqual(['s'.repeat(1_024)])
  })
})
