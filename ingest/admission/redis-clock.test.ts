import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RedisClock } from './redis-clock.ts'

function given(aheadMs: number) {
  const world = { now: 1_000, aheadMs }
  const clock = new RedisClock(() => world.now)
  /** Reads the time of Redis, whose reply takes this long. */
  const read = (replyMs: number) => {
    const time = world.now + world.aheadMs
    world.now += replyMs
    clock.observe(time)
  }
  return { world, clock, read }
}

it('is never ahead of Redis, and as near as the fastest reply of the last seconds', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 500 }), { minLength: 1, maxLength: 8 }), replies => {
      const { world, clock, read } = given(1_700_000_000_000)
      for (const replyMs of replies) {
        read(replyMs)
        expect(clock.now()).toBeLessThanOrEqual(world.now + world.aheadMs)
      }
      expect(world.now + world.aheadMs - clock.now()).toBe(Math.min(...replies))
    }),
  )
})

it('follows a clock that was set back after two windows', () => {
  const { world, clock, read } = given(1_700_000_000_000)
  read(1)
  world.aheadMs -= 60_000
  for (let i = 0; i < 3; i++) {
    world.now += 5_000
    read(1)
  }
  expect(clock.now()).toBe(world.now + world.aheadMs - 1)
})

it('is unknown before the first reading and after a lost connection', () => {
  const { clock, read } = given(1_700_000_000_000)
  expect(clock.isKnown).toBe(false)
  read(0)
  expect(clock.isKnown).toBe(true)
  clock.reset()
  expect(clock.isKnown).toBe(false)
})
