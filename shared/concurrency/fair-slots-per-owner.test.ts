import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { FairSlots } from './fair-slots.ts'

/** Starts tasks that end one after the other, each once `finish` is called. */
function createTasks(turns: FairSlots) {
  const started: string[] = []
  const open: (() => void)[] = []
  return {
    started,
    add(name: string) {
      return turns.run(name.slice(0, 1), () => {
        started.push(name)
        return new Promise<void>(resolve => open.push(resolve))
      })
    },
    async finish() {
      await nextTurn()
      open.shift()?.()
      await nextTurn()
    },
  }
}

it('starts the first task of an owner after one task of each other owner', async () => {
  const turns = new FairSlots({ slots: 1, perOwner: 1 })
  const { started, add, finish } = createTasks(turns)
  const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'].map(add)
  for (const _ of all) await finish()
  await Promise.all(all)
  expect(started).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
  expect(['a', 'b', 'c'].map(owner => turns.tasksOf(owner))).toEqual([0, 0, 0])
})

it('leaves slots to other owners when one has reached its limit', async () => {
  const turns = new FairSlots({ slots: 3, perOwner: 1 })
  const { started, add, finish } = createTasks(turns)
  const all = ['a1', 'a2', 'a3', 'b1'].map(add)
  await nextTurn()
  expect(started).toEqual(['a1', 'b1'])
  expect(turns.tasksOf('a')).toBe(3)
  await finish()
  expect(started).toEqual(['a1', 'b1', 'a2'])
  for (const _ of all) await finish()
  await Promise.all(all)
  expect(turns.tasksOf('a')).toBe(0)
})

it('gives the turn to the next task when one fails', async () => {
  const turns = new FairSlots({ slots: 1, perOwner: 1 })
  const failing = turns.run('a', () => Promise.reject(new Error('no')))
  const next = turns.run('a', async () => 'served')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('served')
  expect(turns.tasksOf('a')).toBe(0)
})
