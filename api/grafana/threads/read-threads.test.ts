import { ClickHouseError } from '@clickhouse/client'
import { pino } from 'pino'
import { afterAll, expect, it } from 'vitest'
import { type ClickHouseClient, isClickHouseCode } from '../../../clickhouse/client.ts'
import type { BoundQuery } from '../../../clickhouse/read-connection.ts'
import type { Expression } from '../../../promql/expression.ts'
import { PromqlError } from '../../../promql/promql-error.ts'
import { TransientError } from '../../../shared/runtime/errors.ts'
import { ReadThreads } from './read-threads.ts'

const threads = new ReadThreads(2, pino({ level: 'silent' }))
afterAll(() => threads.close())

type Read = (query: BoundQuery, onChunk: (chunk: Buffer) => void) => Promise<string>
const clientOf = (read: Read) => ({ reads: { read } }) as unknown as ClickHouseClient
const nothing = clientOf(() => Promise.reject(new Error('nothing is read')))
const selector: Expression = {
  ...{ kind: 'selector', offsetMs: 0, rangeMs: undefined },
  matchers: [{ label: '__name__', operator: '=', value: 'y' }],
}

async function evaluate(expression: Expression, clickhouse = nothing, signal = AbortSignal.timeout(30_000), count = 1) {
  const grid = { startMs: 1_700_000_000_000, stepMs: 1_000, count }
  const query = { workspaceId: 'ws_1', expression, grid, isInstant: true }
  const bytes = await threads.run('evaluateQuery', query, { clickhouse, signal })
  return JSON.parse(Buffer.from(bytes as Uint8Array).toString()).data.result
}

const one: Expression = { kind: 'number', value: 1 }
const hidden: Expression = { kind: 'negation', of: one }

it('computes what the main thread reads for it, and states what it reads', async () => {
  const read: BoundQuery[] = []
  const answers = clientOf(async (query, onChunk) => {
    read.push(query)
    for (const part of ['[', ']']) onChunk(Buffer.from(part))
    return ''
  })
  expect(await evaluate(selector, answers)).toEqual([])
  expect(read.map(({ params }) => params)).toEqual([expect.objectContaining({ workspaceId: 'ws_1', name: 'y' })])
  expect(read[0]?.signal.aborted).toBe(false)
})

it('throws the error of a read as the main thread would', async () => {
  const refused = new ClickHouseError({ message: 'too much', code: '158', type: 'TOO_MANY_ROWS' })
  const error = await evaluate(
    selector,
    clientOf(() => Promise.reject(refused)),
  ).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ name: 'TransientError', cause: refused })
  expect(isClickHouseCode(error, 158)).toBe(true)
})

it('throws the refusal of a query', async () => {
  const unnamed: Expression = { ...selector, matchers: [] }
  const error = await evaluate(unnamed).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(PromqlError)
  expect(error).toMatchObject({ type: 'bad_data', message: expect.stringContaining('without the name of one metric') })
})

it('ends a computation whose time is over, and computes the next one', async () => {
  let endless: Expression = one
  for (let i = 0; i < 2_000; i++) endless = { kind: 'negation', of: endless }
  const startedAt = Date.now()
  const values = 4_000_000
  await expect(evaluate(endless, nothing, AbortSignal.timeout(1_000), values)).rejects.toThrow(TransientError)
  expect(await evaluate(hidden)).toEqual([expect.any(Number), '-1'])
  // Without an end it takes half a minute.
  expect(Date.now() - startedAt).toBeLessThan(15_000)
})

it('ends a task whose read is not answered', async () => {
  const silent = clientOf(
    ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('left')))),
  )
  await expect(evaluate(selector, silent, AbortSignal.timeout(300))).rejects.toThrow(TransientError)
  expect(await evaluate(one)).toEqual([expect.any(Number), '1'])
})
