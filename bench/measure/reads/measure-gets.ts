import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { percentile } from '../../report/statistics.ts'
import { rotated } from '../../support/rounds.ts'
import type { Row } from '../../support/scenario.ts'

/** How often a request is repeated. */
export interface ReadPlan {
  readonly rounds: number
  readonly perRound: number
  /** Whether there is a row for p95 too. */
  readonly hasP95?: boolean
}

/** A request to the API that is repeated and checked. */
export interface Get {
  readonly name: string
  /** Sends the request for the i-th time and returns the body. Throws if the body is wrong. */
  readonly get: (i: number) => Promise<string>
  /** Sends ClickHouse one query of the same rows and returns their number. */
  readonly alone?: (i: number) => Promise<number>
  /** Returns the number of rows in a body, to compare it with that of `alone`. */
  readonly count?: (body: string) => number
}

/** Name of the row of ClickHouse without the API, which reads the same rows in the same rounds. */
export const aloneName = (name: string) => `${name}: ClickHouse alone`

/** Cost of a request, or of the query of the same rows, in all rounds. */
interface Measured {
  readonly latencies: number[][]
  rowsRead: number
  answerBytes: number
  found: number
}

/**
 * Repeats a request sequentially. Returns its rows: p50 and p99 of each round, and those of ClickHouse alone in the same rounds.
 * Each round begins with the other one of both.
 */
export async function measureGets(client: ClickHouseClient, get: Get, plan: ReadPlan): Promise<Row[]> {
  const { rounds, perRound } = plan
  const api: Measured = { latencies: [], rowsRead: 0, answerBytes: 0, found: 0 }
  const bare: Measured = { latencies: [], rowsRead: 0, answerBytes: 0, found: 0 }
  const read = async (i: number) => {
    const body = await get.get(i)
    api.answerBytes += Buffer.byteLength(body)
    return body
  }
  const query = async (i: number) => {
    bare.found += (await get.alone?.(i)) ?? 0
  }
  const contenders = [
    { measured: api, work: async (i: number) => void (await read(i)) },
    ...(get.alone === undefined ? [] : [{ measured: bare, work: query }]),
  ]
  for (let i = 0; i < perRound / 2; i++) for (const { work } of contenders) await work(i)
  api.answerBytes = bare.found = 0
  const ownRows = await rowsOfCounting(client)
  for (let round = 0; round < rounds; round++) {
    for (const { measured, work } of rotated(contenders, round)) {
      const before = await countRowsRead(client)
      measured.latencies.push(await timeEach(perRound, i => work(round * perRound + i)))
      measured.rowsRead += (await countRowsRead(client)) - before - ownRows
    }
  }
  if (get.count !== undefined) for (let i = 0; i < perRound; i++) api.found += get.count(await get.get(i))
  return toRows(get, plan, api, bare)
}

function toRows({ name, alone, count }: Get, { rounds, perRound, hasP95 }: ReadPlan, api: Measured, bare: Measured) {
  const reads = rounds * perRound
  const whole = (value: number) => Math.round(value).toLocaleString('en')
  const row = (suffix: string, unit: string, quantile: number): Row => ({
    name: `${name}${suffix}`,
    unit,
    samples: api.latencies.map(round => percentile(round, quantile)),
  })
  const rows: Row[] = [
    {
      ...row('', 'ms, p50', 0.5),
      ...(alone && { ratios: [{ to: aloneName(name) }] }),
      details: {
        'rows read': whole(api.rowsRead / reads),
        answer: `${whole(api.answerBytes / reads)} bytes`,
        ...(count && { found: (api.found / perRound).toFixed(1) }),
      },
    },
    ...(hasP95 ? [row(', p95', 'ms, p95', 0.95)] : []),
    row(', p99', 'ms, p99', 0.99),
  ]
  if (alone === undefined) return rows
  const samples = bare.latencies.map(round => percentile(round, 0.5))
  const details = { 'rows read': whole(bare.rowsRead / reads), found: (bare.found / reads).toFixed(1) }
  return [...rows, { name: aloneName(name), unit: 'ms, p50', samples, details }]
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
