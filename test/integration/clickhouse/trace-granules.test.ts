import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { OF_TRACE, TRACE_READ_SETTINGS } from '../../../clickhouse/queries/traces/span-row.ts'
import { createDatabase, insertSpans } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `trace_granules_${process.pid}`
const DAY_MS = 86_400_000
const PARTS = [0, 0, 0, 1, 1, 2]
const WORKSPACES = ['ws_1', 'ws_2', 'ws_3']

let client: ClickHouseClient
beforeAll(async () => {
  client = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
})
afterAll(async () => {
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

it('reads one granule for a trace, although each part has one in which a workspace ends', async () => {
  await client.command({ query: 'SYSTEM STOP MERGES spans' })
  const idOf = (part: number, workspace: number) => `${part}${workspace}`.padStart(32, 'a')
  for (const [part, daysAgo] of PARTS.entries()) {
    const receivedAt = Date.now() - daysAgo * DAY_MS - part * 60_000
    const startTimeUnixNano = BigInt(receivedAt) * 1_000_000n
    const spans = WORKSPACES.map((workspaceId, i) => ({ workspaceId, traceId: idOf(part, i) }))
    await insertSpans(
      client,
      spans.map(span => ({ ...span, spanId: '00000000000000a1', startTimeUnixNano, receivedAt })),
    )
  }
  const lines = await explain({ workspaceId: 'ws_2', traceId: idOf(1, 1) })
  expect(lines.filter(line => line.startsWith('Granules:')).at(-1)).toBe('Granules: 1/3')
  expect(lines).toContain(`Parts: 3/${PARTS.length}`)
})

async function explain(params: { workspaceId: string; traceId: string }): Promise<string[]> {
  const result = await client.query({
    query: `EXPLAIN indexes = 1 SELECT name FROM spans WHERE ${OF_TRACE}`,
    query_params: params,
    format: 'JSONEachRow',
    clickhouse_settings: TRACE_READ_SETTINGS,
  })
  return (await result.json<{ explain: string }>()).map(({ explain }) => explain.trim())
}
