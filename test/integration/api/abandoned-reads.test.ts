import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { call, createDatabase, putWorkspace, signToken, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const DATABASE = `api_abandoned_${process.pid}`
const FINDING = `fnd_${'a'.repeat(26)}`
const TRACES = `/v3/findings/${FINDING}/traces`

describe('a read that takes very long', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let api: TestApi
  let impatient: TestApi
  let token: string

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    // They become ready before the tables are others than the migrations make.
    api = await startApi(services, DATABASE, { API_QUERY_TIMEOUT_MS: '60000' })
    impatient = await startApi(services, DATABASE, { API_QUERY_TIMEOUT_MS: '1000' })
    // A table of the same name whose rows are never found. More of them would be over the limit of rows of a read.
    for (const query of [
      'DROP TABLE findings_from_exceptions SYNC',
      'DROP TABLE finding_buckets_from_exceptions SYNC',
      'DROP TABLE finding_variants_from_exceptions SYNC',
      'DROP TABLE exceptions SYNC',
      `INSERT INTO finding_variants (workspace_id, variant_id, membership, finding_ids)
       SELECT 'ws_1', 'v', (0, '${FINDING}'), ['${FINDING}']`,
      `CREATE VIEW exceptions AS
       SELECT 'ws_1' AS workspace_id, toFixedString('v', 16) AS variant_id, toFixedString('x', 16) AS trace_id,
              toFixedString('s', 8) AS span_id, CAST('span_event' AS Enum8('span_event' = 1, 'log_record' = 2)) AS source,
              toUInt64(1) AS occurred_at_unix_nano, now64(3) AS stored_at, now64(3) AS received_at
       FROM numbers(900000000) WHERE sipHash64(repeat(toString(number), 20)) = 0 SETTINGS max_threads = 1`,
    ]) {
      await client.command({ query })
    }
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    token = await signToken()
  })
  afterAll(async () => {
    await Promise.all([api?.stop(), impatient?.stop()])
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  const running = async () => {
    const result = await client.query({
      query: `SELECT count() AS n FROM system.processes
              WHERE current_database = currentDatabase() AND position(query, 'FROM exceptions') > 0 AND is_initial_query
                AND query NOT LIKE '%system.processes%'`,
      format: 'JSONEachRow',
    })
    return Number(((await result.json()) as { n: string }[])[0]?.n)
  }

  it('ends in ClickHouse within a second after its client has left', async () => {
    const { hostname, port } = new URL(api.baseUrl)
    const sockets = Array.from({ length: 3 }, () => {
      const socket = connect(Number(port), hostname)
      socket.write(`GET ${TRACES} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n\r\n`)
      return socket
    })
    await until('all queries to run', async () => (await running()) === sockets.length)
    for (const socket of sockets) socket.destroy()
    await until('all queries to end', async () => (await running()) === 0, { deadlineMs: 1_500 })
  })

  it('is 503 when its time is over, and has ended in ClickHouse then', async () => {
    const { status, body } = await call(impatient.baseUrl, `GET ${TRACES}`, { bearer: token })
    expect({ status, body }).toMatchObject({ status: 503, body: { code: 'FINDING_CONTEXT_QUERY_FAILED' } })
    await until('the query to end', async () => (await running()) === 0, { deadlineMs: 1_500 })
  })
})
