import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { percentile } from '../../report/statistics.ts'
import type { Row } from '../../support/scenario.ts'

/** How often a request is repeated. */
export interface ReadPlan {
  readonly rounds: number
  readonly perRound: number
}

/** A request to the API that is repeated and checked. */
export interface Get {
  readonly name: string
  /** Sends the request for the i-th time and returns the body. Throws if the body is wrong. */
  readonly get: (i: number) => Promise<string>
}

/** Repeats a request sequentially, and returns rows with the percentiles of each round. */
export async function measureGets(client: ClickHouseClient, { name, get }: Get, plan: ReadPlan): Promise<Row[]> {
  const { rounds, perRound } = plan
  for (let i = 0; i < perRound / 2; i++) await get(i)
  const ownRows = await rowsOfCounting(client)
  const before = await countRowsRead(client)
  const latencies: number[][] = []
  let answerBytes = 0
  for (let round = 0; round < rounds; round++) {
    latencies.push(
      await timeEach(perRound, async i => {
        answerBytes += Buffer.byteLength(await get(round * perRound + i))
      }),
    )
  }
  const rowsRead = (await countRowsRead(client)) - before - ownRows
  const perRead = (value: number) => Math.round(value / (rounds * perRound)).toLocaleString('en')
  const row = (suffix: string, unit: string, quantile: number): Row => ({
    name: `${name}${suffix}`,
    unit,
    samples: latencies.map(round => percentile(round, quantile)),
  })
  return [
    {
      ...row('', 'ms, p50', 0.5),
      details: { 'rows read': perRead(rowsRead), answer: `${perRead(answerBytes)} bytes` },
    },
    row(', p95', 'ms, p95', 0.95),
    row(', p99', 'ms, p99', 0.99),
  ]
}

/** Returns the rows that counting the rows adds to their number. */
async function rowsOfCounting(client: ClickHouseClient): Promise<number> {
  const before = await countRowsRead(client)
  return (await countRowsRead(client)) - before
}

/** Returns the rows that queries have read since the server started. */
export async function countRowsRead(client: ClickHouseClient): Promise<number> {
  const result = await client.query({
    query: "SELECT value FROM system.events WHERE event = 'SelectedRows'",
    format: 'JSONEachRow',
  })
  const [row] = await result.json<{ value: string }>()
  return Number(row?.value ?? 0)
}

/** Runs `work` `count` times and returns the duration of each run in ms. */
export async function timeEach(count: number, work: (i: number) => Promise<void>): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    const startedAt = performance.now()
    await work(i)
    times.push(performance.now() - startedAt)
  }
  return times
}
