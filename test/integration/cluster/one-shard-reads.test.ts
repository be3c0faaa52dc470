import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, onEachShard } from '../../../clickhouse/client.ts'
import { selectFindingHasTrace } from '../../../clickhouse/queries/findings/select-finding-traces.ts'
import { type ColumnsSelection, selectTraceColumns } from '../../../clickhouse/queries/traces/select-trace-columns.ts'
import { selectTraceExtent } from '../../../clickhouse/queries/traces/select-trace-extent.ts'
import { selectRows } from '../../../clickhouse/select.ts'
import { type ClickHouseCluster, startClickHouseCluster } from '../../support/cluster/clickhouse-cluster.ts'
import { createDatabase, insertExceptions, insertSpans } from '../../support/services/api.ts'
import { until } from '../../support/until.ts'

const QUERY_LOG = `<query_log><database>system</database><table>query_log</table>
  <flush_interval_milliseconds>1000</flush_interval_milliseconds></query_log>`
const FINDING = `fnd_${'a'.repeat(26)}`

let cluster: ClickHouseCluster
let client: ClickHouseClient

beforeAll(async () => {
  cluster = await startClickHouseCluster({ config: QUERY_LOG })
  client = await createDatabase(cluster.url, 'penstock')
})
afterAll(async () => {
  await client?.close()
  await cluster?.stop()
})

/** Returns how many queries of this text each shard has run. */
async function queriesOn(text: string): Promise<number[]> {
  return onEachShard(client, async shard => {
    await shard.command({ query: 'SYSTEM FLUSH LOGS' })
    const result = await shard.query({
      query: `SELECT count() AS n FROM system.query_log WHERE type = 'QueryFinish' AND query_kind = 'Select'
                AND position(query, {text: String}) > 0 AND position(query, 'system.query_log') = 0`,
      query_params: { text },
      format: 'JSONEachRow',
    })
    const [row] = await result.json<{ n: string }>()
    return Number(row?.n)
  })
}

describe('reads of a trace', () => {
  it('reach the shard of the trace and no other', async () => {
    const traces = Array.from({ length: 24 }, () => randomBytes(16).toString('hex'))
    await insertSpans(
      client,
      traces.flatMap(traceId => ['01', '02'].map(id => ({ traceId, spanId: `00000000000000${id}` }))),
    )
    await insertExceptions(
      client,
      traces.map(traceId => ({ traceId, findingId: FINDING })),
    )
    const signal = AbortSignal.timeout(30_000)
    for (const traceId of traces) {
      const key = { workspaceId: 'ws_1', traceId }
      const countRows = async (selection: ColumnsSelection) => {
        let rows = 0
        await selectTraceColumns(client, key, selection, () => rows++, signal)
        return rows
      }
      expect(await countRows({ texts: 'shown', maxRows: 10 })).toBe(2)
      expect(await countRows({ texts: 'shown', maxRows: 10, spanIds: ['0000000000000002'] })).toBe(1)
      expect(await countRows({ texts: 'sizes', maxRows: 10 })).toBe(2)
      expect((await selectTraceExtent(client, key, signal))?.endedAtUnixNano).toBeGreaterThan(0n)
      expect(await selectFindingHasTrace(client, { ...key, findingIds: [FINDING] }, signal)).toBe(true)
    }
    // The text of each of the five reads contains this, and a read of both shards would be in the log of each.
    // A server logs a query after it has answered.
    const [first = 0, second = 0] = await until('all reads are logged', async () => {
      const queries = await queriesOn('trace_id = unhex(')
      return (queries[0] ?? 0) + (queries[1] ?? 0) >= 5 * traces.length ? queries : undefined
    })
    expect(first + second).toBe(5 * traces.length)
    expect(Math.min(first, second)).toBeGreaterThan(0)
    const [ofFirst, ofSecond] = await onEachShard(client, async shard => {
      const result = await shard.query({ query: 'SELECT uniqExact(trace_id) AS n FROM spans', format: 'JSONEachRow' })
      return Number((await result.json<{ n: string }>())[0]?.n)
    })
    expect([first, second]).toEqual([5 * (ofFirst ?? 0), 5 * (ofSecond ?? 0)])
  })

  it('are different from reads of all traces, which reach both', async () => {
    const [row] = await selectRows<{ traces: string }>(client, {
      query: `SELECT uniqExact(trace_id) AS traces FROM spans WHERE workspace_id = {workspaceId: String}`,
      params: { workspaceId: 'ws_1' },
      signal: AbortSignal.timeout(20_000),
    })
    expect(row?.traces).toBe('24')
    await until('both shards have logged it', async () => (await queriesOn('uniqExact(')).every(queries => queries > 0))
  })
})
