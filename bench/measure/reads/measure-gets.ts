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

/** Repeats a request sequentially. Returns its rows: p50 and p99 of each round. */
export async function measureGets(
  client: ClickHouseClient,
  { name, get }: Get,
  { rounds, perRound }: ReadPlan,
): Promise<Row[]> {
  for (let i = 0; i < perRound / 2; i++) await get(i)
  let answerBytes = 0
  const latencies: number[][] = []
  const rowsBefore = await countRowsRead(client)
  for (let round = 0; round < rounds; round++) {
    latencies.push(
      await timeEach(perRound, async i => {
        answerBytes += Buffer.byteLength(await get(round * perRound + i))
      }),
    )
  }
  const reads = rounds * perRound
  const rowsRead = ((await countRowsRead(client)) - rowsBefore) / reads
  const whole = (value: number) => Math.round(value).toLocaleString('en')
  return [
    {
      name,
      unit: 'ms, p50',
      samples: latencies.map(round => percentile(round, 0.5)),
      details: { 'rows read': whole(rowsRead), answer: `${whole(answerBytes / reads)} bytes` },
    },
    { name: `${name}, p99`, unit: 'ms, p99', samples: latencies.map(round => percentile(round, 0.99)) },
  ]
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
