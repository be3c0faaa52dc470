import { expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { TextBatch } from '../../test/support/oracles/text-batch.ts'
import { until } from '../../test/support/until.ts'
import { ColumnMemory } from './column-memory.ts'
import { RowsPool } from './rows-pool.ts'

it('admits a pool that holds nothing, whatever the others hold', () => {
  const memory = new ColumnMemory(90)
  expect(memory.take('traces', 60)).toBe(true)
  expect(memory.take('traces', 35)).toBe(false)
  expect(memory.take('logs', 80)).toBe(true)
  expect(memory.take('logs', 1)).toBe(false)
  memory.give('logs', 80)
  memory.give('traces', 60)
  expect(memory.take('traces', 60)).toBe(true)
})

it('wakes a pool that waits when another gives memory back', async () => {
  const memory = new ColumnMemory(90)
  memory.take('traces', 40)
  memory.take('logs', 30)
  let isReserved = false
  const reserved = memory.reserve('logs', 30).then(() => {
    isReserved = true
  })
  await Promise.resolve()
  expect(isReserved).toBe(false)
  memory.give('traces', 40)
  await reserved
})

it('gives the memory of idle rows back before a pool has to wait', async () => {
  const memory = new ColumnMemory(90 * MIB)
  const rows = rowsOf(20 * MIB)
  const idle = new RowsPool('traces', memory, [rows])
  idle.giveBack(await idle.take())
  expect(memory.take('logs', 75 * MIB)).toBe(true)
  expect(rows.capacityBytes).toBe(0)
})

it('lets idle rows give their memory back for other work of the process', async () => {
  const memory = new ColumnMemory()
  const rows = rowsOf(20 * MIB)
  const idle = new RowsPool('traces', memory, [rows])
  const busy = await idle.take()
  memory.giveBackIdle()
  expect(rows.capacityBytes).toBe(20 * MIB)
  idle.giveBack(busy)
  memory.giveBackIdle()
  expect(rows.capacityBytes).toBe(0)
})

it('lets a pool that was admitted continue although its idle rows keep some of the memory', async () => {
  const memory = new ColumnMemory(90 * MIB)
  expect(memory.take('traces', 80 * MIB)).toBe(true)
  const pool = new RowsPool('exceptions', memory, [rowsOf(2 * MIB), rowsOf(2 * MIB)])
  for (let batch = 0; batch < 3; batch++) {
    const rows = await pool.take()
    await pool.reserve(rows, 20 * MIB, AbortSignal.timeout(1_000))
    pool.settle(rows)
    pool.giveBack(rows)
  }
})

it('gives the memory of rows to a pool that waits when their batch is stored', async () => {
  const memory = new ColumnMemory(90 * MIB)
  const pool = new RowsPool('traces', memory, [rowsOf(70 * MIB), new TextBatch()])
  const [empty, full] = [await pool.take(), await pool.take()]
  pool.settle(full)
  const reserved = pool.reserve(empty, 60 * MIB, AbortSignal.timeout(1_000))
  await Promise.resolve()
  pool.giveBack(full)
  await reserved
})

it('runs one large job at a time, and lets only a few wait', async () => {
  const memory = new ColumnMemory()
  let running = 0
  let most = 0
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const run = () =>
    memory.runLarge('express', async () => {
      most = Math.max(most, ++running)
      await released
      running--
    })
  const first = run()
  await until('the first one runs', () => running === 1)
  const jobs = [first, ...Array.from({ length: 8 }, run)]
  await expect(run()).rejects.toThrow('other large requests wait')
  release()
  await Promise.all(jobs)
  expect(most).toBe(1)
})

/** Rows whose buffers have some memory, until they shrink. */
function rowsOf(capacityBytes: number): TextBatch {
  const rows = new TextBatch()
  Object.defineProperty(rows, 'capacityBytes', { value: capacityBytes, writable: true })
  rows.shrink = () => Object.assign(rows, { capacityBytes: 0 })
  return rows
}
