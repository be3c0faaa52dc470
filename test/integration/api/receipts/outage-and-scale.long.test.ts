import { expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { selectReceipt } from '../../../../clickhouse/queries/select-receipt.ts'
import { DAY_MS } from '../../../../schemas/units.ts'
import { newId } from '../../../../shared/directory/directory.ts'
import { newCommit } from '../../../../shared/ids/receipt.ts'
import { call, startApi } from '../../../support/services/api.ts'
import { startCountingProxy } from '../../../support/services/counting-proxy.ts'
import { browse, clickhouse, database, objectStore, publicKey, redisUrl, services } from './fixture.ts'

it('a receipt is answered with 503 while ClickHouse or the directory is unavailable', async () => {
  const { receiptId } = await browse('POST /v3/session', '{"sessionId":"s"}')
  for (const away of ['clickhouse', 'redis'] as const) {
    const proxy = await startCountingProxy(away === 'redis' ? redisUrl : services.clickhouseUrl)
    const place = away === 'redis' ? { redisUrl: proxy.url } : { clickhouseUrl: proxy.url }
    const cutOff = await startApi({ ...services, redisUrl, ...place }, database.name, objectStore)
    const headers = { 'x-service-public-key': publicKey }
    const asked = () => call(cutOff.baseUrl, `GET /v3/receipts/${receiptId}`, { headers })
    expect((await asked()).status).toBe(200)
    await proxy.close()
    const answer = await asked()
    expect({ away, ...answer }).toMatchObject({
      status: 503,
      body: { code: 'INGEST_INFRA_UNAVAILABLE', service: 'frontier-runtime' },
    })
    expect(answer.headers.get('retry-after')).toBe('5')
    await cutOff.stop()
  }
})

it('a receipt is found among millions of rows by reading a few thousand', async () => {
  const busy = { workspaceId: newId('ws'), surfaceId: newId('srf') }
  const noon = new Date().setUTCHours(12, 0, 0, 0) - DAY_MS
  const commit = newCommit('traces', noon)
  await clickhouse.command({
    query: `
      INSERT INTO ingest_log (workspace_id, surface_id, received_at, job_id, signal, receipt_commit, receipt_indexes)
      SELECT {workspaceId: String}, {surfaceId: String}, fromUnixTimestamp64Milli(toInt64({noon: UInt64} + (number - 1000000) * 10)),
        toString(number), 'traces', if(number = 1000003, unhex({commit: String}), randomString(12)), [0, 1, 2]
      FROM numbers(2000000)`,
    query_params: { ...busy, noon, commit: commit.toString('hex') },
  })
  const reads: number[] = []
  const counting = {
    reads: {
      async read(...query: Parameters<ClickHouseClient['reads']['read']>) {
        const summary = await clickhouse.reads.read(...query)
        reads.push(Number((JSON.parse(summary) as { read_rows: string }).read_rows))
        return summary
      },
    },
  } as ClickHouseClient
  const signal = AbortSignal.timeout(10_000)
  const key = { ...busy, commit, arrivedAtMs: noon }
  expect(await selectReceipt(counting, { ...key, index: 2 }, signal)).toMatchObject([{ reason: '', objectKey: '' }])
  expect(await selectReceipt(counting, { ...key, index: 3 }, signal)).toEqual([])
  expect(reads).toHaveLength(2)
  for (const rows of reads) expect(rows).toBeLessThan(50_000)
  expect(Math.min(...reads)).toBeGreaterThan(0)
})
