import { expect, it } from 'vitest'
import { POOL_NAMES } from '../schemas/queues/names.ts'
import { MIB } from '../schemas/units.ts'
import { ConfigError, parseConfig } from '../shared/runtime/config.ts'
import { faultOfPools, poolsOf, symbolicationHeapBytes, workersConfigSchema } from './config.ts'

const parse = (env: Record<string, string> = {}) =>
  parseConfig(workersConfigSchema, { DIRECTORY_REDIS_URL: 'redis://directory:6379', ...env })

it('gives the process that parses source maps half of the heap limit of a small process, and no more than it needs', () => {
  expect(symbolicationHeapBytes(parse(), 256 * MIB)).toBe(128 * MIB)
  expect(symbolicationHeapBytes(parse(), 64 * MIB)).toBe(96 * MIB)
  expect(symbolicationHeapBytes(parse(), 4_096 * MIB)).toBe(1_152 * MIB)
  expect(symbolicationHeapBytes(parse({ SYMBOLICATION_HEAP_BYTES: String(200 * MIB) }), 4_096 * MIB)).toBe(200 * MIB)
})

it('bounds how often the directory is backed up, how many backups are kept, and the length of their key', () => {
  expect(parse()).toMatchObject({ DIRECTORY_BACKUP_INTERVAL_S: 3_600, DIRECTORY_BACKUP_KEEP: 168 })
  for (const env of [
    { DIRECTORY_BACKUP_INTERVAL_S: '59' },
    { DIRECTORY_BACKUP_INTERVAL_S: '86401' },
    { DIRECTORY_BACKUP_KEEP: '1' },
    { DIRECTORY_BACKUP_KEEP: '10001' },
    { DIRECTORY_BACKUP_KEY: 'x'.repeat(31) },
  ]) {
    expect(() => parse(env as unknown as Record<string, string>), JSON.stringify(env)).toThrow(ConfigError)
  }
})

it('refuses a heap in which the parser of source maps cannot start', () => {
  expect(() => parse({ SYMBOLICATION_HEAP_BYTES: String(95 * MIB) })).toThrow(ConfigError)
  expect(() => parse({ SYMBOLICATION_HEAP_BYTES: '1e12' })).toThrow(ConfigError)
})

it('starts the pools that are named, each once, or all without names', () => {
  expect(poolsOf(undefined)).toEqual(POOL_NAMES)
  expect(poolsOf('logs,traces,logs')).toEqual(['traces', 'logs'])
  expect(faultOfPools(undefined)).toBeUndefined()
  expect(faultOfPools('traces,logs')).toBeUndefined()
  for (const [pools, name] of [
    ['foo', 'foo'],
    ['traces,', ''],
    ['traces, logs', ' logs'],
    ['', ''],
  ] as const) {
    expect(faultOfPools(pools)).toBe(`--pools names ${JSON.stringify(name)}, which is none of the pools`)
  }
})
