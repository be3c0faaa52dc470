import { EventEmitter } from 'node:events'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { VerdictWaits } from './verdict-waits.ts'

it('shares the slots among surfaces, so that one surface never takes those of another', () => {
  const redis = Object.assign(new EventEmitter(), { mget: async () => [], status: 'wait' }) as unknown as Redis
  const options = { maxWaiting: 8, deadlineMs: 1_000, pollMs: 1_000 }
  const waits = new VerdictWaits({ redis, subscriber: redis, logger: pino({ level: 'silent' }) }, options)
  const begin = (surfaceId: string) => waits.begin({ workspaceId: 'ws_1', surfaceId })
  const hostile = Array.from({ length: 100 }, () => begin('srf_hostile')).filter(wait => wait !== undefined)
  expect(hostile).toHaveLength(4)
  const other = begin('srf_other')
  expect(other).toBeDefined()
  for (const wait of hostile) {
    wait.end()
    wait.end()
  }
  expect(waits.size).toBe(1)
  other?.end()
  expect(waits.size).toBe(0)
  waits.stop()
})
