import { pino } from 'pino'
import { expect, it } from 'vitest'
import { RedisMemory } from './redis-memory.ts'

function given() {
  const warnings: string[] = []
  const logger = pino({ base: null }, { write: line => void warnings.push(JSON.parse(line).msg) })
  return { memory: new RedisMemory(logger, 'queues'), warnings }
}

const info = (used: number, limit: number, policy = 'noeviction') =>
  `# Memory\r\nused_memory:${used}\r\nused_memory_human:1M\r\nmaxmemory:${limit}\r\nmaxmemory_policy:${policy}\r\n`

it('returns the used share of the limit, and 0 without a limit', () => {
  const { memory, warnings } = given()
  expect(memory.usedShare(info(70, 100))).toBe(0.7)
  expect(warnings).toEqual([])
  expect(memory.usedShare(info(70, 0))).toBe(0)
})

it('warns once while Redis has no limit, and again when the limit was removed again', () => {
  const { memory, warnings } = given()
  for (let i = 0; i < 3; i++) memory.usedShare(info(70, 0))
  expect(warnings).toEqual([expect.stringContaining('redis has no maxmemory')])
  memory.usedShare(info(70, 100))
  memory.usedShare(info(70, 0))
  expect(warnings).toHaveLength(2)
})

it('warns when Redis may remove what was acknowledged', () => {
  const { memory, warnings } = given()
  memory.usedShare(info(70, 100, 'allkeys-lru'))
  expect(warnings).toEqual([expect.stringContaining('maxmemory-policy allkeys-lru')])
})
