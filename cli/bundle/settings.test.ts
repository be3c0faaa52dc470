import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { SECRET_SETTINGS } from '../../shared/runtime/secret-files.ts'
import { ADDRESSES, describeSettings, HIDDEN, NUMBERS, WORDS, withoutCredentials } from './settings.ts'

describe('settings of a debug bundle', () => {
  it('are those of env.example, each of one kind', () => {
    const text = readFileSync(new URL('../../deploy/env.example', import.meta.url), 'utf8')
    const names = [...text.matchAll(/^#?([A-Z0-9_]+)=/gm)].map(([, name]) => name)
    const shown = [...NUMBERS, ...Object.keys(WORDS), ...ADDRESSES, ...HIDDEN]
    const secrets = SECRET_SETTINGS.filter(name => !shown.includes(name))
    expect([...shown, ...secrets].sort()).toEqual(names.sort())
  })

  it('show numbers, words that they may have and hosts, and of all others whether they are set', () => {
    const shown = describeSettings({
      JOB_LOCK_MS: '15000',
      SWEEP_INTERVAL_MS: 'a secret',
      LOG_LEVEL: 'info',
      REDIS_DURABILITY: 'a secret',
      REDIS_URL: 'redis+sentinel://user:secret@one:26379,two:26379/name',
      S3_BUCKET: 'penstock',
      KEY_PEPPER: 'secret',
      CLICKHOUSE_PASSWORD_FILE: '/run/secrets/clickhouse',
    })
    expect(shown).toMatchObject({
      ...{ JOB_LOCK_MS: '15000', SWEEP_INTERVAL_MS: 'set', LOG_LEVEL: 'info', REDIS_DURABILITY: 'set' },
      REDIS_URL: 'redis+sentinel://one:26379, two:26379',
      ...{ S3_BUCKET: 'set', KEY_PEPPER: 'set', CLICKHOUSE_PASSWORD: 'set, by a file', S3_REGION: 'not set' },
    })
    expect(JSON.stringify(shown)).not.toMatch(/secret@|a secret/)
  })

  it('have addresses without user, password, path and query', () => {
    expect(withoutCredentials('http://a:b@one:8123|http://two:8123,https://c:d%40@[::1]:1/path?password=e')).toBe(
      'http://one:8123, http://two:8123, https://[::1]:1',
    )
    expect(withoutCredentials('rediss://:secret@redis:6379/1?ca=/tls/ca.pem')).toBe('rediss://redis:6379')
  })
})
