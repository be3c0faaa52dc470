import { describe, expect, it } from 'vitest'
import type { DurabilitySettings } from '../runtime/config.ts'
import { durabilityFault } from './durability.ts'

const SAFE = {
  role: 'master',
  loading: '0',
  aof_enabled: '1',
  aof_last_write_status: 'ok',
  maxmemory: '1073741824',
  maxmemory_policy: 'noeviction',
  slave0: 'ip=10.0.0.2,port=6379,state=online,offset=100,lag=0',
  slave1: 'ip=10.0.0.3,port=6379,state=online,offset=100,lag=1',
}
const AOF = { appendfsync: 'always', 'no-appendfsync-on-rewrite': 'no' }

/** Decides on a Redis that keeps every promise, but for these differences. */
function fault(
  differences: Partial<typeof SAFE & { redis_version: string }> = {},
  { aof = AOF, promise = {} }: { aof?: Partial<typeof AOF> | null; promise?: Partial<DurabilitySettings> } = {},
): string | undefined {
  const info = Object.entries({ ...SAFE, ...differences }).map(([name, value]) => `${name}:${value}\r\n`)
  const settings = aof === null ? undefined : new Map(Object.entries({ ...AOF, ...aof }))
  return durabilityFault(info.join(''), settings, { REDIS_DURABILITY: 'fsync', REDIS_MIN_REPLICAS: 1, ...promise })
}

describe('a Redis that could lose what it confirms', () => {
  it.each([
    ['it is loading', { loading: '1' }, /loading/],
    ['it is a replica', { role: 'slave' }, /replica/],
    ['it has no append-only file', { aof_enabled: '0' }, /appendonly/],
    ['it could not write its file', { aof_last_write_status: 'err' }, /aof_last_write_status/],
    ['it removes data when it is full', { maxmemory_policy: 'allkeys-lru' }, /maxmemory-policy is allkeys-lru/],
    ['it has no limit of memory', { maxmemory: '0' }, /maxmemory is 0/],
  ])('%s', (_name, differences, reason) => {
    expect(fault(differences)).toMatch(reason)
  })

  it.each(['everysec', 'no'])('its appendfsync is %s', appendfsync => {
    expect(fault({}, { aof: { appendfsync } })).toMatch(`appendfsync is ${appendfsync}`)
  })

  it('it does not sync while it rewrites its file', () => {
    expect(fault({}, { aof: { 'no-appendfsync-on-rewrite': 'yes' } })).toMatch('no-appendfsync-on-rewrite')
  })

  it.each(['fsync', 'unchecked'] as const)('its version is before 7.0, with %s', REDIS_DURABILITY => {
    const old = { redis_version: '6.2.14' }
    expect(fault(old, { aof: null, promise: { REDIS_DURABILITY } })).toBe(
      'version 6.2.14 is too old: Redis 7.0 or later is needed',
    )
  })

  it('it forbids to read its settings; the reason names the setting that accepts that', () => {
    expect(fault({}, { aof: null })).toMatch('REDIS_DURABILITY=unchecked')
  })
})

describe('with replicas', () => {
  const promise = (REDIS_MIN_REPLICAS: number) => ({
    promise: { REDIS_DURABILITY: 'replicated', REDIS_MIN_REPLICAS } as const,
  })

  it('as many must be in step as a commit waits for', () => {
    expect(fault({}, promise(2))).toBeUndefined()
    expect(fault({}, promise(3))).toMatch('2 replicas are in step and REDIS_MIN_REPLICAS is 3')
  })

  it('one that is far behind or synchronizing does not count', () => {
    expect(fault({ slave1: 'ip=10.0.0.3,port=6379,state=online,offset=1,lag=11' }, promise(2))).toMatch('1 replicas')
    expect(fault({ slave1: 'ip=10.0.0.3,port=6379,state=wait_bgsave,offset=1,lag=0' }, promise(2))).toMatch(
      '1 replicas',
    )
  })

  it('the settings of fsync are required too', () => {
    expect(fault({}, { aof: { appendfsync: 'everysec' }, ...promise(1) })).toMatch('appendfsync')
  })
})

describe('unchecked', () => {
  const unchecked = { promise: { REDIS_DURABILITY: 'unchecked' } } as const

  it('accepts a Redis whose settings are unknown or lose data', () => {
    expect(
      fault({ aof_enabled: '0', maxmemory: '0', maxmemory_policy: 'allkeys-lru' }, { aof: null, ...unchecked }),
    ).toBe(undefined)
  })

  it('does not accept a replica, which refuses every write', () => {
    expect(fault({ role: 'slave' }, unchecked)).toMatch('replica')
  })
})

it('keeps its promise with the settings that are required', () => {
  expect(fault()).toBeUndefined()
})

it.each(['7.0.15', '7.2.4', '8.0.0', '10.1.0'])('Redis %s is new enough', redis_version => {
  expect(fault({ redis_version })).toBeUndefined()
})
