import { expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { aloneName, type Get, measureGets } from './measure-gets.ts'

/** Rows that a request reads, that the query of the same rows reads, and that counting rows reads. */
const ROWS = { api: 700, alone: 300, counting: 1_000 }

/** A client whose server has read `read` rows. Each question for their number reads more. */
function createFake() {
  const fake = {
    read: 0,
    client: {
      query: async () => {
        const value = String(fake.read)
        fake.read += ROWS.counting
        return { json: async () => [{ value }] }
      },
    } as unknown as ClickHouseClient,
  }
  return fake
}

const plan = { rounds: 3, perRound: 4 }

it('measures ClickHouse alone in the same rounds, and each by the rows that it has read', async () => {
  const fake = createFake()
  const order: string[] = []
  const get: Get = {
    name: 'logs',
    get: async () => {
      order.push('api')
      fake.read += ROWS.api
      return '[1,2]'
    },
    alone: async () => {
      order.push('alone')
      fake.read += ROWS.alone
      return 2
    },
    count: body => (JSON.parse(body) as number[]).length,
  }
  const rows = await measureGets(fake.client, get, { ...plan, hasP95: true })
  expect(rows.map(({ name }) => name)).toEqual(['logs', 'logs, p95', 'logs, p99', aloneName('logs')])
  expect(rows[0]?.ratios).toEqual([{ to: aloneName('logs') }])
  expect(rows[0]?.details).toEqual({ 'rows read': '700', answer: '5 bytes', found: '2.0' })
  expect(rows[3]?.details).toEqual({ 'rows read': '300', found: '2.0' })
  for (const { samples } of rows) expect(samples).toHaveLength(plan.rounds)
  // After two requests of each to warm up, the second round begins with the other one.
  expect(order.slice(4, 28)).toEqual(
    ['api', 'alone', 'alone', 'api', 'api', 'alone'].flatMap(who => Array.from({ length: plan.perRound }, () => who)),
  )
})

it('has no ratio without a query of the same rows', async () => {
  const rows = await measureGets(createFake().client, { name: 'findings', get: async () => '{}' }, plan)
  expect(rows.map(({ name }) => name)).toEqual(['findings', 'findings, p99'])
  expect(rows[0]?.ratios).toBeUndefined()
})
