import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { rounds } from '../support/length.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { CRASH_SETTINGS, killDuring, SpanExports } from '../support/span-exports.ts'
import { until } from '../support/until.ts'

/** Default of the workers. */
const SHUTDOWN_DEADLINE_MS = 20_000

let stack: Stack
let clickhouse: ClickHouseClient

beforeAll(async () => {
  stack = await startStack(CRASH_SETTINGS)
  clickhouse = createClickHouse({
    url: stack.services.clickhouseUrl,
    database: 'penstock',
  })
})

afterAll(async () => {
  await clickhouse?.close()
  await stack?.stop()
})

describe.each([
  ['the workers', () => stack.workers],
  ['Redis', () => stack.services.redis],
  ['ClickHouse', () => stack.services.clickhouse],
  ['the edge', () => stack.edge],
] as const)('kill -9 of %s in the middle of a stream of exports', (_name, victim) => {
  it('leaves every acknowledged span stored exactly once, and no other twice', async () => {
    const stream = new SpanExports(stack, clickhouse)
    for (let round = 0; round < rounds(3); round++) await killDuring(stream, victim())
    await stream.stop()
    await stream.expectStoredOnce()
  })
})

it('SIGTERM ends edge and workers in time while ClickHouse is unavailable, and acknowledged spans are stored afterwards', async () => {
  const stream = new SpanExports(stack, clickhouse)
  await until('exports are acknowledged', () => stream.acknowledged.length > 300)
  await stack.services.clickhouse.kill9()
  const tried = stream.attempts
  await until('the queue grows', () => stream.attempts > tried + 200)
  for (const part of [stack.workers, stack.edge]) {
    // Inserts are given up after a fourth of the workers' deadline. A host that is gone refuses no connection until then.
    expect(await part.stop(SHUTDOWN_DEADLINE_MS)).toEqual({ code: 0, signal: null })
  }
  await stream.stop()
  await Promise.all([stack.services.clickhouse.restart(), stack.workers.restart(), stack.edge.restart()])
  const expected = stream.acknowledged.flat()
  await until('every acknowledged span is stored', async () => {
    const counts = await stream.countSpans()
    return expected.every(id => counts.get(id) === 1)
  })
})
