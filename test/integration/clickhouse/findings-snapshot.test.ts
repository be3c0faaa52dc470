import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectFindingsPage } from '../../../clickhouse/queries/findings/select-findings-page.ts'
import { selectFindingsSnapshot } from '../../../clickhouse/queries/findings/select-findings-snapshot.ts'
import { MINUTE_MS } from '../../../schemas/units.ts'
import { createDatabase } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `findings_snapshot_${process.pid}`
const idOf = (letter: string) => `fnd_${letter.repeat(26)}`

let client: ClickHouseClient

beforeAll(async () => {
  client = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
})
afterAll(async () => {
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

async function arrive(letter: string, storedMs: number): Promise<void> {
  await client.command({
    query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, stored_at, finding_id, variant_id)
            SELECT 'ws_1', 'srf_1', fromUnixTimestamp64Milli(toInt64(${storedMs})), fromUnixTimestamp64Milli(toInt64(${storedMs})),
              '${idOf(letter)}', sipHash128('${letter}')`,
    clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
  })
}

it('shows findings that have arrived since a snapshot by their arrival before it', async () => {
  const now = Date.now()
  const [a, b, c] = [now - 40 * MINUTE_MS, now - 30 * MINUTE_MS, now - 20 * MINUTE_MS]
  await arrive('a', a)
  await arrive('b', b)
  await arrive('c', c)
  await arrive('c', now)
  const signal = AbortSignal.timeout(20_000)
  const snapshot = await selectFindingsSnapshot(client, signal)
  await arrive('a', Date.now())
  await arrive('c', Date.now())
  const none = { surfaceId: undefined, serviceName: undefined, fromMs: undefined, toMs: undefined, text: undefined }
  const page = { workspaceId: 'ws_1', merges: new Map(), snapshot, filter: none, limit: 10, after: undefined }
  const found = await selectFindingsPage(client, page, signal)
  expect(found.map(({ id, storedMs }) => [id, Number(storedMs)])).toEqual([
    [idOf('c'), now],
    [idOf('b'), b],
    [idOf('a'), a],
  ])
})
