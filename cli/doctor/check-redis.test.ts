import { expect, it } from 'vitest'
import { judgeServer } from './check-redis.ts'

const AOF = new Map([
  ['appendfsync', 'always'],
  ['no-appendfsync-on-rewrite', 'no'],
])
const FSYNC = { REDIS_DURABILITY: 'fsync', REDIS_MIN_REPLICAS: 1 } as const
const INFO = {
  ...{ redis_version: '7.0.15', loading: '0', role: 'master', aof_enabled: '1', maxmemory_policy: 'noeviction' },
  ...{ used_memory: '250', maxmemory: '1000' },
}

/** Returns the reply of INFO with some fields changed. */
const infoWith = (changes: Partial<typeof INFO> = {}) =>
  Object.entries({ ...INFO, ...changes })
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')

it('a server that keeps what it confirms is well, with its version and memory', () => {
  expect(judgeServer(infoWith(), AOF, FSYNC, '')).toEqual({
    result: 'ok',
    text: 'Redis 7.0.15 keeps what it confirms, 25 % of its memory used',
  })
})

it('a server that is too old is a fault, whatever is promised', () => {
  for (const REDIS_DURABILITY of ['fsync', 'unchecked'] as const) {
    const found = judgeServer(infoWith({ redis_version: '6.2.14' }), undefined, { ...FSYNC, REDIS_DURABILITY }, '')
    expect(found).toEqual({ result: 'fault', text: 'Redis 6.2.14 is too old: 7.0 or later is needed' })
  }
})

it('a setting that breaks the promise is a fault, and settings that are not checked are a warning', () => {
  const unsafe = new Map([...AOF, ['appendfsync', 'everysec']])
  expect(judgeServer(infoWith(), unsafe, FSYNC, 'server 2: ')).toEqual({
    result: 'fault',
    text: 'server 2: appendfsync is everysec: set appendfsync always',
  })
  expect(judgeServer(infoWith(), unsafe, { ...FSYNC, REDIS_DURABILITY: 'unchecked' }, '').result).toBe('warning')
})

it('a server above the share of its memory at which nothing is accepted is a warning', () => {
  expect(judgeServer(infoWith({ used_memory: '710' }), AOF, FSYNC, '')).toEqual({
    result: 'warning',
    text: 'Redis 7.0.15, 71 % of its memory used: nothing is accepted above 70 %',
  })
})
