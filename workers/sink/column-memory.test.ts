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
  const rows = new TextBatch()
  Object.defineProperty(rows, 'capacityBytes', { value: 20 * MIB, writable: true })
  rows.shrink = () => Object.assign(rows, { capacityBytes: 0 })
  const idle = new RowsPool('traces', memory, [rows])
  idle.giveBack(await idle.take())
  expect(memory.take('logs', 75 * MIB)).toBe(true)
  expect(rows.capacityBytes).toBe(0)
})

it('lets idle rows give their memory back for other work of the process', async () => {
  const memory = new ColumnMemory()
  const rows = new TextBatch()
  Object.defineProperty(rows, 'capacityBytes', { value: 20 * MIB, writable: true })
  rows.shrink = () => Object.assign(rows, { capacityBytes: 0 })
  const idle = new RowsPool('traces', memory, [rows])
  const busy = await idle.take()
  memory.giveBackIdle()
  expect(rows.capacityBytes).toBe(20 * MIB)
  idle.giveBack(busy)
  memory.giveBackIdle()
  expect(rows.capacityBytes).toBe(0)
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
