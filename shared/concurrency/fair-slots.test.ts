import { expect, it } from 'vitest'
import { TransientError } from '../runtime/errors.ts'
import { FairSlots, type Slot } from './fair-slots.ts'

const NEVER = new AbortController().signal

/** Starts tasks, which end when the test releases them, and records the order in which they got their slots. */
function setup(slots: number, waiting = 100) {
  const fair = new FairSlots({ slots, waiting })
  const running: { readonly owner: string; readonly slot: Slot }[] = []
  const refused: string[] = []
  const start = async (owner: string, signal = NEVER) => {
    const slot = await fair.acquire(owner, signal)
    if (slot) running.push({ owner, slot })
    else refused.push(owner)
  }
  const settle = () => new Promise<void>(resolve => setImmediate(resolve))
  const end = async (owner: string) => {
    const index = running.findIndex(task => task.owner === owner)
    running.splice(index, 1)[0]?.slot.release()
    await settle()
  }
  const runningOf = (owner: string) => running.filter(task => task.owner === owner).length
  return { fair, start, end, settle, runningOf, refused }
}

it('leaves slots for others however many tasks one owner starts', async () => {
  const { start, settle, runningOf } = setup(8)
  for (let i = 0; i < 50; i++) void start('hog')
  await settle()
  expect(runningOf('hog')).toBe(4)
  await start('other')
  expect(runningOf('other')).toBe(1)
})

it('serves waiting owners in turn, not in the order of their tasks', async () => {
  const { start, end, settle, runningOf } = setup(2)
  for (let i = 0; i < 20; i++) void start('hog')
  await settle()
  await start('second')
  // Both slots are taken, and the 19 tasks of the hog came first.
  void start('third')
  await settle()
  expect([runningOf('hog'), runningOf('second'), runningOf('third')]).toEqual([1, 1, 0])
  await end('second')
  await end('hog')
  expect(runningOf('third')).toBe(1)
})

it('gives every slot back, also twice, and grants all tasks in the end', async () => {
  const { fair, start, end, settle, runningOf } = setup(4)
  for (let i = 0; i < 10; i++) void start('a')
  await settle()
  let ended = 0
  while (runningOf('a') > 0) {
    await end('a')
    ended++
  }
  expect(ended).toBe(10)
  const slot = await fair.acquire('a', NEVER)
  slot?.release()
  slot?.release()
  for (const owner of ['a', 'b', 'c']) await start(owner)
  expect([runningOf('a'), runningOf('b'), runningOf('c')]).toEqual([1, 1, 1])
})

it('refuses the tasks of an owner with too many waiting ones, and no other owner', async () => {
  const { start, settle, refused } = setup(2, 10)
  for (let i = 0; i < 50; i++) void start('hog')
  await settle()
  expect(refused.length).toBe(50 - 1 - 5)
  await start('second')
  void start('third')
  await settle()
  expect(new Set(refused)).toEqual(new Set(['hog']))
})

it('ends a wait when its signal fires, and keeps the slot for the next task', async () => {
  const { fair, start, end, settle, runningOf } = setup(2)
  await start('a')
  const left = new AbortController()
  const waiting = fair.acquire('a', left.signal)
  void start('a')
  left.abort()
  expect(await waiting).toBeUndefined()
  expect(await fair.acquire('a', AbortSignal.abort())).toBeUndefined()
  expect(await fair.acquire('b', AbortSignal.abort())).toBeUndefined()
  await expect(fair.run('a', async () => 1, AbortSignal.abort())).rejects.toThrow(TransientError)
  await end('a')
  await settle()
  expect(runningOf('a')).toBe(1)
})
