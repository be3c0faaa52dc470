import { expect, it } from 'vitest'
import { parseRedisTarget } from './redis-group.ts'

it('reads the URL of a server, of Sentinels and of a cluster', () => {
  expect(parseRedisTarget('rediss://u:p@a:1/2')).toEqual({ kind: 'server', url: 'rediss://u:p@a:1/2' })
  expect(parseRedisTarget('redis+sentinel://:p%40s@a,b:2/main?sentinelPassword=s')).toEqual({
    kind: 'sentinel',
    nodes: [
      { host: 'a', port: 26_379 },
      { host: 'b', port: 2 },
    ],
    name: 'main',
    password: 'p@s',
    sentinelPassword: 's',
  })
  expect(parseRedisTarget('rediss+cluster://user:pw@[::1]:7000')).toEqual({
    kind: 'cluster',
    nodes: [{ host: '::1', port: 7_000 }],
    username: 'user',
    password: 'pw',
    tls: {},
  })
})

it.each([
  '',
  'http://a',
  'redis://a:1,redis://b:2',
  'redis+sentinel://a',
  'redis+cluster://a/1',
  'redis+cluster://',
  'redis+cluster://a:x',
])('refuses %s', text => expect(parseRedisTarget(text)).toBeUndefined())
